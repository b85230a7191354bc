//! The user's own causes and cases: `causes.toml` in the config folder, in the same form as the catalogue's
//! files.

use super::catalogue::{Catalogue, Pattern, Says, builtin, builtin_cause, install};
use super::pattern::regex;
use super::statements::lexicon;
use crate::event::clean_text;
use crate::files::read_text_at_most;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Largest accepted file, in bytes; no real list of causes is longer.
const MAX_BYTES: u64 = 1 << 20;

/// A file of causes that cannot be used.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum UserCausesError {
    #[error("cannot read the causes in {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}, line {line}: {reason}")]
    Bad { path: PathBuf, line: usize, reason: String },
}

/// Where the user's causes are; `None` if this system has no config folder.
pub fn user_causes_path() -> Option<PathBuf> {
    use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
    let app_name = "qnnscope".to_owned();
    let args = AppStrategyArgs { top_level_domain: "io".to_owned(), author: "qnnscope".to_owned(), app_name };
    Some(choose_app_strategy(args).ok()?.in_config_dir("causes.toml"))
}

/// Loads the user's causes, if there is a file: a cause with an id from the catalogue replaces that one. Call
/// it before the first diagnosis; later it has no effect.
///
/// # Errors
/// The file exists but cannot be read, or contains something invalid.
pub fn load_user_causes() -> Result<(), UserCausesError> {
    let Some(path) = user_causes_path().filter(|path| path.exists()) else { return Ok(()) };
    install(read(&path)?);
    Ok(())
}

fn read(path: &Path) -> Result<Catalogue, UserCausesError> {
    let text =
        read_text_at_most(path, MAX_BYTES).map_err(|source| UserCausesError::Io { path: path.to_owned(), source })?;
    parse(&text).map_err(|(line, reason)| UserCausesError::Bad { path: path.to_owned(), line, reason })
}

fn parse(text: &str) -> Result<Catalogue, (usize, String)> {
    let line_of = |at: usize| text[..text.floor_char_boundary(at)].matches('\n').count() + 1;
    let file: Catalogue = toml::from_str(text).map_err(|error| {
        (error.span().map_or(1, |span| line_of(span.start)), clean_text(&error.message().replace('\n', "; ")))
    })?;
    // What the parser cannot know; the line is that of the entry's id.
    let line = |id: &str| text.find(&format!("\"{id}\"")).map_or(1, line_of);
    for cause in &file.cause {
        let bad = |reason: String| Err((line(&cause.id), format!("cause {}: {reason}", clean_text(&cause.id))));
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if cause.id.is_empty() || !cause.id.chars().all(plain) {
            return bad("its id has to be made of small letters, digits and -".to_owned());
        }
        if cause.title.is_empty() || cause.why.is_empty() || cause.fix.is_empty() {
            return bad("title, why and fix must say something".to_owned());
        }
        for signal in &cause.signal {
            if let Err(reason) = check(&signal.pattern) {
                return bad(reason);
            }
            if !(signal.weight > 0.0 && signal.weight < 1.0) {
                return bad(format!("a weight of {} is not between 0 and 1", signal.weight));
            }
            for name in signal.with.iter().chain(&signal.without).chain(&cause.without) {
                let own = file.flag.iter().map(|flag| &flag.name);
                let known = catalogue_flags().any(|flag| flag == name) || own.into_iter().any(|flag| flag == name);
                if !known {
                    return bad(format!("there is no flag {name:?}"));
                }
            }
        }
    }
    for flag in &file.flag {
        check(&flag.pattern).map_err(|reason| (line(&flag.name), format!("flag {}: {reason}", flag.name)))?;
    }
    let is_known = |id: &str| builtin_cause(id) || file.cause.iter().any(|cause| cause.id == id);
    for steps in &file.steps {
        // By its id alone: looking up an alias would find nothing.
        if !builtin().cause.iter().chain(&file.cause).any(|cause| cause.id == steps.cause) {
            return Err((line(&steps.cause), format!("steps: there is no cause {:?}", clean_text(&steps.cause))));
        }
    }
    for case in &file.case {
        if !is_known(&case.cause) {
            let reason = format!("case {}: there is no cause {:?}", clean_text(&case.id), case.cause);
            return Err((line(&case.id), reason));
        }
    }
    Ok(file)
}

fn catalogue_flags() -> impl Iterator<Item = &'static String> {
    builtin().flag.iter().map(|flag| &flag.name)
}

fn check(pattern: &Pattern) -> Result<(), String> {
    let literals = [&pattern.all, &pattern.any, &pattern.any_of, &pattern.not];
    if let Some(short) = literals.into_iter().flatten().find(|text| text.len() < 2) {
        return Err(format!("{short:?} is too short to look for"));
    }
    if let Some(re) = &pattern.re {
        if pattern.is_empty() {
            return Err("an expression (re) needs `all` or `any` beside it".to_owned());
        }
        regex(re).map_err(|error| clean_text(&error.to_string().replace('\n', " ")))?;
    }
    pattern.says.as_ref().map_or(Ok(()), check_says)
}

/// Checks that the classes in a statement are in the lexicon.
pub(super) fn check_says(says: &Says) -> Result<(), String> {
    let lexicon = lexicon();
    if says.said.is_empty() {
        return Err("`says` needs `said`".to_owned());
    }
    for name in &says.said {
        lexicon.said_class(name).ok_or_else(|| format!("nothing is said with the word class {name:?}"))?;
    }
    for name in says.of.iter().chain(&says.and).chain(&says.not_of) {
        lexicon.object_class(name).ok_or_else(|| format!("there is no object class {name:?}"))?;
    }
    for name in &says.who {
        lexicon.who_class(name).ok_or_else(|| format!("nobody is called {name:?}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_with_their_line() {
        let cause = |rest: &str| {
            format!(
                "# mine\n\n[[cause]]\nid = \"my-cause\"\ntitle = \"t\"\nstage = \"unknown\"\nwhy = \"w\"\nfix = \"f\"\n{rest}"
            )
        };
        let wrong = |text: &str| parse(text).unwrap_err();
        assert!(
            parse(&cause("signal = [ { says = { said = [\"missing\"], of = [\"model\"] }, weight = 0.5 } ]")).is_ok()
        );
        for (text, line, part) in [
            (cause("signal = 3"), 9, "sequence"),
            (cause("signal = [ { any = [\"x\"], weight = 0.5 } ]"), 4, "too short"),
            (cause("signal = [ { any = [\"xyz\"], weight = 1.5 } ]"), 4, "between 0 and 1"),
            (cause("signal = [ { any = [\"xyz\"], re = \"(\", weight = 0.5 } ]"), 4, "unclosed group"),
            (cause("signal = [ { any = [\"xyz\"], with = [\"nosuch\"], weight = 0.5 } ]"), 4, "nosuch"),
            (cause("signal = [ { says = { said = [\"gone\"] }, weight = 0.5 } ]"), 4, "gone"),
            (cause("color = 1"), 9, "unknown field"),
            (
                "\n[[case]]\nid = \"c\"\ncause = \"nosuch\"\nstates = []\nsolved = \"s\"\nsource = \"x\"\n".to_owned(),
                3,
                "nosuch",
            ),
            ("\n[[steps]]\ncause = \"nosuch\"\nany = [\"x\"]\n".to_owned(), 3, "nosuch"),
        ] {
            let (found, reason) = wrong(&text);
            assert!(found == line && reason.contains(part), "{text}\n{found}: {reason}");
        }
    }
}
