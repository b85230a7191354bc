//! `qnnscope explain`.

use super::headless::{print, print_json};
use super::width::text_width;
use super::{BAD_INPUT, CliError, OK};
use crate::diagnosis::{Answer, ExplainDocument, explain_text, load_user_causes};

/// Arguments of `qnnscope explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// Codes: decimal, hexadecimal or negative, with or without higher bits set; or a symbol or part of one
    #[arg(value_name = "CODE", required = true, allow_hyphen_values = true)]
    codes: Vec<String>,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Explains each code. Bad input only if none of them is known.
pub fn explain(args: &ExplainArgs) -> Result<u8, CliError> {
    load_user_causes()?;
    // A negative number may precede the option, which then arrives among the codes.
    let json = args.json || args.codes.iter().any(|code| code == "--json");
    let asked = args.codes.iter().filter(|code| *code != "--json");
    let answers: Vec<(String, Answer)> = asked.map(|code| (code.clone(), crate::diagnosis::explain(code))).collect();
    if json {
        print_json(&ExplainDocument::new(&answers))?;
    } else {
        print(&explain_text(&answers, text_width()))?;
    }
    let any_known = answers.iter().any(|(_, answer)| matches!(answer, Answer::Known(_)));
    Ok(if any_known { OK } else { BAD_INPUT })
}
