//! Completions and man pages.

use std::process::{Command, Output};

fn qnnscope(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_qnnscope")).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn bash_completes_commands_and_options_with_the_script() {
    let script = text(&qnnscope(&["completions", "bash"]));
    let complete = |words: &str| {
        let ask = format!(
            "{script}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); \
             _qnnscope qnnscope \"${{COMP_WORDS[$COMP_CWORD]}}\" \"${{COMP_WORDS[$COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        text(&Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap())
    };
    assert_eq!(complete("qnnscope insp").trim(), "inspect");
    assert!(complete("qnnscope run --warm").contains("--warmup"));
    assert!(!complete("qnnscope ''").contains("__runner"), "what is not for people is not offered");
    let shell = qnnscope(&["completions", "tcsh"]);
    assert_eq!(shell.status.code(), Some(2));
}

#[test]
fn every_command_has_a_page() {
    let page = text(&qnnscope(&["man", "run"]));
    assert!(page.contains(".TH") && page.contains("warmup"), "{page}");
    assert_eq!(qnnscope(&["man", "nosuchcommand"]).status.code(), Some(2));
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("man1");
    let write = |force: &[&str]| qnnscope(&[&["man", "--dir", dir.to_str().unwrap()], force].concat()).status.code();
    assert_eq!(write(&[]), Some(0));
    for name in ["qnnscope.1", "qnnscope-run.1", "qnnscope-doctor.1"] {
        assert!(std::fs::read_to_string(dir.join(name)).unwrap().contains(".TH"), "{name}");
    }
    assert!(!dir.join("qnnscope-__runner.1").exists());
    assert_eq!(write(&[]), Some(0), "its own are replaced");
    std::fs::write(dir.join("qnnscope-run.1"), "my notes").unwrap();
    assert_eq!(write(&[]), Some(2), "other files are kept");
    assert_eq!(write(&["--force"]), Some(0));
}

#[test]
fn options_of_a_command_stand_under_no_heading_of_others() {
    let help = text(&qnnscope(&["--help"]));
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with("  "));
    // Continuation lines of a description are indented further.
    let names = commands.filter_map(|line| line[2..].split(' ').next().filter(|name| !name.is_empty()));
    let mut seen = 0;
    for name in names.filter(|name| *name != "help") {
        let help = text(&qnnscope(&[name, "--help"]));
        let mut heading = "";
        for line in help.lines() {
            if !line.starts_with(' ') && line.ends_with(':') {
                heading = line;
            }
            let option = line.trim().split([' ', '[', '=']).next().unwrap_or_default();
            if ["--json", "--force", "--record", "--headless", "--timeout"].contains(&option) {
                assert_eq!(heading, "Options:", "{option} of {name}");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}
