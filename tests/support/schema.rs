//! The published schemas.

use jsonschema::Validator;
use serde_json::Value;

/// A schema of `docs/`, itself valid.
pub fn read(name: &str) -> Validator {
    let text = std::fs::read_to_string(super::repo("docs").join(name)).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

#[track_caller]
pub fn fits(validator: &Validator, document: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
