//! Ensures that all launches of a run measure the same thing, since files may be replaced during a run.

use crate::event::{Event, TensorData};

/// What the first launch measured.
#[derive(Debug, Default)]
pub(super) struct Identity {
    model: Option<String>,
    build_id: Option<String>,
    inputs: Option<Vec<TensorData>>,
}

impl Identity {
    /// Compares a launch's identity with the first one's; returns the difference, if any.
    pub fn take(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::ModelIdentified(model) => {
                let first = self.model.get_or_insert_with(|| model.sha256.clone());
                (*first != model.sha256).then(|| {
                    let start = |sum: &str| sum.chars().take(12).collect::<String>();
                    let (first, now) = (start(first), start(&model.sha256));
                    format!(
                        "the model file was replaced between launches (its SHA-256 began with {first}, now with {now})"
                    )
                })
            }
            Event::RuntimeLoaded(runtime) => {
                let now = runtime.build_id.as_ref()?;
                let first = self.build_id.get_or_insert_with(|| now.clone());
                (first != now).then(|| format!("the runtime was replaced between launches: {first} became {now}"))
            }
            Event::InputsPrepared { inputs, .. } => {
                let first = self.inputs.get_or_insert_with(|| inputs.clone());
                let other = first.iter().zip(inputs).find(|(first, now)| first != now);
                let name = other.map(|(_, now)| now.name.clone()).filter(|_| first.len() == inputs.len());
                (first != inputs).then(|| {
                    let of = name.map_or_else(String::new, |name| format!(" of `{name}`"));
                    format!("the input data{of} were replaced between launches")
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ModelInfo, RuntimeInfo};
    use crate::models::ModelFormat;

    fn model(sha256: &str) -> Event {
        let (path, sha256) = ("m".to_owned(), sha256.to_owned());
        Event::ModelIdentified(Box::new(ModelInfo {
            path,
            format: ModelFormat::Dlc,
            sha256,
            bytes: 1,
            context_binary: None,
        }))
    }

    fn runtime(build_id: Option<&str>) -> Event {
        Event::RuntimeLoaded(RuntimeInfo {
            path: "p".to_owned(),
            build_id: build_id.map(ToOwned::to_owned),
            core_api: "2.36".to_owned(),
            backend_api: "1.0.0".to_owned(),
            provider: "P".to_owned(),
        })
    }

    fn inputs(sums: &[&str]) -> Event {
        let tensor = |(at, sum): (usize, &&str)| TensorData {
            name: format!("x{at}"),
            source: "f".to_owned(),
            bytes: 4,
            quantization: None,
            sha256: Some((*sum).to_owned()),
        };
        Event::InputsPrepared { seed: 1, inputs: sums.iter().enumerate().map(tensor).collect() }
    }

    #[test]
    fn what_stays_the_same_is_nothing_to_tell_and_what_changes_is_named() {
        let mut identity = Identity::default();
        for _ in 0..2 {
            for event in [model("aa"), runtime(Some("v1")), inputs(&["1", "2"])] {
                assert_eq!(identity.take(&event), None);
            }
        }
        assert_eq!(identity.take(&runtime(None)), None, "not known is not another one");
        assert!(identity.take(&model("ab")).unwrap().contains("began with aa, now with ab"));
        assert!(identity.take(&runtime(Some("v2"))).unwrap().contains("v1 became v2"));
        assert!(identity.take(&inputs(&["1", "3"])).unwrap().contains("of `x1` were replaced"));
    }
}
