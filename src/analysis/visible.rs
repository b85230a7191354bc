//! Whether the gain of a suggestion could be measured on this machine at all.

use super::launches::between_launches;
use super::{Evidence, Finding, FindingKind};
use crate::store::Run;

/// Gains above this share of an inference show up anywhere.
const LARGE: f64 = 0.1;

/// Adds to suggestions with a small gain whether launches of this run could resolve it.
pub(super) fn say(run: &Run, findings: &mut [Finding]) {
    let small = |finding: &&mut Finding| {
        finding.kind == FindingKind::Suggestion
            && finding.expected_gain_us.is_some()
            && finding.expected_gain_share.is_some_and(|[_, most]| 0.0 < most && most < LARGE)
    };
    let between = between_launches(run.service());
    let tells =
        between.as_ref().map(|between| (between.launches, between.tells_in_turns_percent, between.tells_percent));
    for finding in findings.iter_mut().filter(small) {
        let most = 100.0 * finding.expected_gain_share.map_or(0.0, |[_, most]| most);
        let text = match tells {
            Some((launches, None, _)) => format!(
                "could not be seen here: {launches} launches like these differ too much from each other to tell two models apart"
            ),
            Some((launches, Some(in_turns), _)) if most < in_turns => format!(
                "could not be seen here: it saves at most {most:.1} %, and two models with {launches} launches like these in \
                 turns (`qnnscope run OLD NEW`) resolve differences from {in_turns:.1} %"
            ),
            Some((launches, Some(in_turns), apart)) if apart.is_none_or(|apart| most < apart) => format!(
                "could be seen here in turns (`qnnscope run OLD NEW`), which resolve differences from {in_turns:.1} % by \
                 {launches} launches like these; separate runs would not show it"
            ),
            Some((launches, _, Some(percent))) => format!(
                "could be seen here: two runs of {launches} launches like these resolve differences from {percent:.1} %"
            ),
            Some((_, _, None)) => continue,
            None => format!(
                "whether {most:.1} % could be seen here is not known from one launch; `qnnscope bench-check` says which \
                 differences this machine can resolve"
            ),
        };
        finding.evidence.push(Evidence::new(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Severity;
    use crate::analysis::testing::{Made, only, steady};
    use crate::backends::Backend;

    fn said(made: Made, most: f64) -> Option<String> {
        let store = made.store();
        let evidence = vec![Evidence::new("seen")];
        let mut finding = Finding::new("x", FindingKind::Suggestion, Severity::Info, "title".to_owned(), evidence);
        (finding.expected_gain_share, finding.expected_gain_us) = (Some([0.0, most]), Some([0.0, 1000.0 * most]));
        let mut findings = [finding];
        say(only(&store), &mut findings);
        findings[0].evidence.get(1).map(|evidence| evidence.text.clone())
    }

    #[test]
    fn small_gains_are_held_against_what_launches_vary() {
        let launches =
            |levels: [f64; 3]| Made::local(Backend::Cpu).launches(levels.map(|us| steady(us, 5.0, 100)).to_vec());
        let loud = said(launches([1000.0, 1030.0, 980.0]), 0.02).unwrap();
        assert!(loud.starts_with("could not be seen here: it saves at most 2.0 %"), "{loud}");
        let calm = said(launches([1000.0, 1001.0, 999.0]), 0.02).unwrap();
        assert!(calm.starts_with("could be seen here in turns"), "{calm}");
        let larger = said(launches([1000.0, 1001.0, 999.0]), 0.06).unwrap();
        assert!(larger.starts_with("could be seen here: two runs of 3"), "{larger}");
        let wild = said(launches([1000.0, 9000.0, 2000.0]), 0.02).unwrap();
        assert!(wild.contains("3 launches like these differ too much"), "{wild}");
        let one = said(Made::local(Backend::Cpu).clean(steady(1000.0, 5.0, 300)), 0.02).unwrap();
        assert!(one.contains("not known from one launch"), "{one}");
        assert_eq!(said(launches([1000.0, 1030.0, 980.0]), 0.3), None);
    }
}
