use super::*;
use crate::diagnosis::pattern::regex;
use crate::event::Stage;
use std::collections::BTreeSet;

fn patterns() -> impl Iterator<Item = (String, &'static Pattern)> {
    let signals = causes().iter().flat_map(|cause| cause.signal.iter().map(|s| (cause.id.clone(), &s.pattern)));
    let flags = catalogue().flag.iter().map(|flag| (flag.name.clone(), &flag.pattern));
    signals.chain(flags).chain(catalogue().harmless.iter().map(|pattern| ("harmless".to_owned(), pattern)))
}

#[test]
fn every_file_parses() {
    for text in FILES {
        toml::from_str::<Catalogue>(text).unwrap();
    }
}

#[test]
fn every_failure_mode_is_there() {
    let names: BTreeSet<&str> =
        causes().iter().flat_map(|cause| cause.aliases.iter().chain([&cause.id])).map(String::as_str).collect();
    for id in include_str!("ids.txt").split_whitespace() {
        assert!(names.contains(id), "{id} is missing");
    }
    let ids: Vec<&str> = causes().iter().map(|cause| cause.id.as_str()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "an id stands twice");
}

#[test]
fn every_cause_is_complete() {
    let other = ["framework", "conversion", "unknown"];
    for cause in causes() {
        let id = &cause.id;
        assert!(Stage::ALL.iter().any(|s| s.name() == cause.stage) || other.contains(&cause.stage.as_str()), "{id}");
        assert!(!cause.title.is_empty() && !cause.why.is_empty() && !cause.fix.is_empty(), "{id}");
        assert!(!cause.confirm.is_empty() && !cause.signal.is_empty(), "{id}");
        for check in &cause.confirm {
            assert!(!check.what.is_empty() && !check.command.contains('\n'), "{id}: {}", check.id);
        }
        for code in &cause.codes {
            assert!(matches!(crate::diagnosis::explain(code), crate::diagnosis::Answer::Known(_)), "{id}: {code}");
        }
    }
}

#[test]
fn every_pattern_can_match() {
    let flags: BTreeSet<&str> = catalogue().flag.iter().map(|flag| flag.name.as_str()).chain(FACTS).collect();
    for (owner, pattern) in patterns() {
        let literals = [&pattern.all, &pattern.any, &pattern.any_of, &pattern.not];
        // A letter is in every line; a punctuation mark may be rare enough.
        let is_rare = |text: &String| text.len() >= 2 || text.chars().all(|c| c.is_ascii_punctuation());
        assert!(literals.into_iter().flatten().all(is_rare), "{owner}: a literal is too short");
        if let Some(re) = &pattern.re {
            assert!(!pattern.is_empty(), "{owner}: an expression without a literal is never tried");
            regex(re).unwrap_or_else(|error| panic!("{owner}: {error}"));
        }
        if let Some(says) = &pattern.says {
            crate::diagnosis::user::check_says(says).unwrap_or_else(|error| panic!("{owner}: {error}"));
        }
    }
    for cause in causes() {
        for signal in &cause.signal {
            let known = |name: &String| flags.contains(name.as_str());
            assert!(
                signal.with.iter().chain(&signal.without).chain(&cause.without).all(known),
                "{}: unknown flag",
                cause.id
            );
            assert!(signal.weight > 0.0 && signal.weight < 1.0, "{}", cause.id);
            assert!(!signal.is_of_flags() || !signal.with.is_empty(), "{}: empty signal", cause.id);
        }
    }
}

#[test]
fn notes_on_codes_name_known_causes() {
    for note in &catalogue().code {
        assert!(!note.says.is_empty());
        for id in &note.causes {
            assert!(cause(id).is_some_and(|cause| cause.id == *id), "{id}");
        }
    }
}
