//! What a file is for, as the command that named it says: in `tool --model a.so --output_dir /srv/out`, a later
//! `a.so: No such file or directory` is about the model, `/srv/out/0: ...` about where the results go.

use super::evidence::{Evidence, excerpt};

/// Bytes of a line that is read; a longer one is no command.
const LONGEST: usize = 2048;
/// Most files that are remembered.
const MOST_FILES: usize = 32;
/// A shorter name may be part of another word.
const SHORTEST_NAME: usize = 4;

/// Options, by the fact that holds if their file cannot be opened.
const OPTIONS: [(&str, &[&str]); 6] = [
    (
        "named-model-missing",
        &[
            "model",
            "m",
            "model_path",
            "model_file",
            "dlc_path",
            "dlc",
            "input_dlc",
            "input_network",
            "input_model",
            "network",
            "onnx",
            "onnx_model",
            "onnx_path",
            "tflite",
            "tflite_model",
            "net",
            "container",
            "retrieve_context",
            "context",
            "context_binary",
            "binary_file",
            "graph",
        ],
    ),
    (
        "named-input-missing",
        &[
            "input_list",
            "input",
            "inputs",
            "input_file",
            "input_path",
            "input_dir",
            "image",
            "images",
            "img",
            "audio",
            "calibration_data",
            "calib",
            "calib_dir",
            "calibration_dir",
            "dataset",
            "data",
            "raw",
        ],
    ),
    ("named-config-missing", &["config", "config_file", "cfg", "conf", "htp_config", "genie_config"]),
    ("named-encodings-missing", &["quantization_overrides", "encodings", "encoding_path"]),
    ("named-backend-missing", &["backend", "backend_path", "backend_lib", "backend_library", "qnn_lib"]),
    (
        "named-output-unusable",
        &[
            "output",
            "outputs",
            "output_dir",
            "output_path",
            "output_file",
            "out",
            "out_dir",
            "o",
            "outfile",
            "save_dir",
            "save_context",
            "dump_dir",
            "cache_dir",
            "results",
            "result_dir",
            "work_dir",
            "log_dir",
        ],
    ),
];

/// What is said of a file that cannot be opened.
const CANNOT_OPEN: [&str; 12] = [
    "no such file",
    "not found",
    "cannot find",
    "can't find",
    "could not find",
    "does not exist",
    "doesn't exist",
    "permission denied",
    "not a directory",
    "read-only file system",
    "cannot open",
    "enoent",
];

/// Programs whose `-o` names a program.
const COMPILERS: [&str; 7] = ["cc", "c++", "g++", "clang", "clang++", "rustc", "ld"];

/// A place that a command names.
#[derive(Debug, Clone)]
struct Named {
    fact: &'static str,
    path: String,
}

/// The files that commands name, and the first failures about one of them.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    named: Vec<Named>,
    failed: Vec<(&'static str, Evidence)>,
}

impl Roles {
    /// Reads a line of the start of the log: a command, or a failure.
    pub fn note(&mut self, number: u64, line: &[u8]) {
        if line.len() > LONGEST {
            return;
        }
        let Ok(text) = std::str::from_utf8(line) else { return };
        if text.contains(" -") {
            self.command(text);
        } else if !self.named.is_empty() {
            self.failure(number, text);
        }
    }

    /// The facts that hold, with the line that shows each.
    pub fn at_end(&self) -> &[(&'static str, Evidence)] {
        &self.failed
    }

    fn command(&mut self, text: &str) {
        // What a compiler makes is a program that will speak for itself.
        if text.split_whitespace().take(3).any(|word| COMPILERS.iter().any(|name| word.ends_with(name))) {
            return;
        }
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, words.peek().copied()),
            };
            let name = name.to_ascii_lowercase().replace('-', "_");
            let fact = OPTIONS.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(fact, _)| *fact);
            let path = value.unwrap_or_default().trim_matches(['"', '\'', ';', ',']);
            if let Some(fact) = fact
                && path.len() >= SHORTEST_NAME
                && path.contains(['/', '.', '\\'])
                && !path.starts_with('-')
                && self.named.len() < MOST_FILES
            {
                self.named.push(Named { fact, path: path.trim_start_matches("./").trim_end_matches('/').to_owned() });
            }
        }
    }

    fn failure(&mut self, number: u64, text: &str) {
        let lower = text.to_ascii_lowercase();
        // What an earlier tool should have made is not a place that cannot be written.
        if lower.contains("for reading") || !CANNOT_OPEN.iter().any(|said| lower.contains(said)) {
            return;
        }
        // The longest path is the one that is meant: an output folder may lie beside the model.
        let meant = self.named.iter().filter(|named| is_named(text, &named.path)).max_by_key(|named| named.path.len());
        if let Some(Named { fact, .. }) = meant
            && !self.failed.iter().any(|(known, _)| known == fact)
        {
            self.failed.push((fact, Evidence { line: number, text: excerpt(text.as_bytes()) }));
        }
    }
}

/// True if the text holds the path as a whole, maybe with a file in it.
fn is_named(text: &str, path: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(path).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + path.len()..].chars().next());
        !before.is_some_and(in_name)
            && !after.is_some_and(|c| {
                in_name(c) || c == '.' && !text[at + path.len()..].starts_with(". ") && text.len() > at + path.len() + 1
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(lines: &[&str]) -> Vec<&'static str> {
        let mut roles = Roles::default();
        lines.iter().zip(1..).for_each(|(line, number)| roles.note(number, line.as_bytes()));
        roles.at_end().iter().map(|(fact, _)| *fact).collect()
    }

    #[test]
    fn the_option_that_named_a_file_says_what_it_is_for() {
        let command =
            "$ ./netrun --backend /opt/libQnnHtp.so --model ./libnet.so --input_list=list.txt --output_dir /srv/out/";
        for (failure, fact) in [
            ("netrun: ./libnet.so: cannot open shared object file: No such file or directory", "named-model-missing"),
            ("error: cannot open 'list.txt'", "named-input-missing"),
            ("/srv/out/Result_0: Permission denied", "named-output-unusable"),
            ("dlopen /opt/libQnnHtp.so: No such file or directory.", "named-backend-missing"),
        ] {
            assert_eq!(facts(&[command, failure]), [fact], "{failure}");
        }
        for other in
            ["libnet.so loaded", "libnet.so.1: No such file", "mylibnet.so not found", "list.txt.bak not found"]
        {
            assert_eq!(facts(&[command, other]), Vec::<&str>::new(), "{other}");
        }
        let made = ["$ cc -o ./probe probe.c", "$ strace -o out/trace.txt ./run"];
        let of_others =
            ["./probe: dlopen failed: libQnnHTP.so: No such file", "cat: cannot open 'out/trace.txt' for reading"];
        assert_eq!(
            facts(&[&made[..], &of_others].concat()),
            Vec::<&str>::new(),
            "what was made, not what was asked for"
        );
        assert_eq!(facts(&["libnet.so: not found"]), Vec::<&str>::new(), "no command names it");
    }
}
