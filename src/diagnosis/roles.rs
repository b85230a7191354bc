//! What a file is for, as the command that named it says: in `tool --model a.so --output_dir /srv/out`, a later
//! `a.so: No such file or directory` is about the model, `/srv/out/0: Permission denied` about where the results go.

use super::evidence::{Evidence, excerpt};
use super::pattern::regex;
use super::statements::{Level, level};
use regex::bytes::Regex;
use std::sync::LazyLock;

/// Bytes of a line that is read; a longer one is no command.
const LONGEST: usize = 2048;
/// Most files that are remembered.
const MOST_FILES: usize = 32;
/// A shorter name may be part of another word.
const SHORTEST_NAME: usize = 4;

/// Options of programs that run or convert models, by the fact that holds if their file cannot be opened. Options
/// that other programs have with another meaning (`-m`, `-o`, `--context`, `--image`, `--data`) say nothing.
const OPTIONS: [(&str, &[&str]); 6] = [
    (
        "named-model-missing",
        &[
            "model",
            "model_path",
            "model_file",
            "dlc_path",
            "dlc",
            "input_dlc",
            "input_network",
            "input_model",
            "onnx_model",
            "onnx_path",
            "tflite_model",
            "retrieve_context",
            "context_binary",
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
            "calibration_data",
            "calib_dir",
            "calibration_dir",
        ],
    ),
    ("named-config-missing", &["config", "config_file", "htp_config", "genie_config"]),
    ("named-encodings-missing", &["quantization_overrides", "encodings", "encoding_path"]),
    ("named-backend-missing", &["backend", "backend_path", "backend_lib", "backend_library", "qnn_lib"]),
    (
        OUTPUT,
        &[
            "output",
            "output_dir",
            "output_path",
            "output_file",
            "out_dir",
            "outfile",
            "save_dir",
            "save_context",
            "dump_dir",
        ],
    ),
];
const OUTPUT: &str = "named-output-unusable";

/// A file that cannot be opened: the path is what the failure is about, not one that it merely mentions.
static FAILURES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let path = r#"([^\s:"'`(),]+(?::\\[^\s:"'`(),]+)?)["'`]?"#;
    let before = r#"(?:^|[\s:=(\["'`])"#;
    let said = "cannot open|can't open|could not open|no such file|not found|does not exist|doesn't exist|permission denied|not a directory|read-only file system|is not readable";
    let verb = "(?:open|find|load|read|access|create|write|locate|stat)(?:ing)?(?: (?:the|shared|library|model|file|input|list|config|directory|folder|to|from|dlc|backend))*";
    let forms = [
        format!("{before}{path}: (?:error: )?(?:{said})"),
        format!("{before}{path} (?:was )?(?:not found|does not exist|doesn't exist|is not readable)"),
        format!("(?:cannot|can't|could not|unable to|failed to|error) {verb}:? *[\"'`]?{path}"),
        format!("(?:{said})(?: or directory)?: [\"'`]?{path}"),
    ];
    forms.iter().filter_map(|form| regex(form).ok()).collect()
});

/// A file is missing on purpose, or its absence is only noted.
const NOTED: [&str; 17] = [
    "using ",
    "creating",
    "building",
    "compiling",
    "starting",
    "skipping",
    "generating",
    "default",
    "needed by",
    "for reading",
    "will be",
    "searching",
    "trying",
    "no problem",
    "first run",
    "not found in ",
    "error(",
];
/// Programs that look for files without needing them.
const LOOKING: [&str; 8] = ["rm:", "ls:", "stat:", "cat:", "head:", "tail:", "test:", "diff:"];
/// Programs whose `--output` names a program.
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
        let named = self.named.len();
        if text.contains(" -") {
            self.command(text);
        }
        if named == self.named.len() && named > 0 {
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
            let Some(option) = word.strip_prefix("--") else { continue };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, words.peek().copied()),
            };
            let name = name.to_ascii_lowercase().replace('-', "_");
            let fact = OPTIONS.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(fact, _)| *fact);
            let value = value.unwrap_or_default();
            // `"C:\Program Files\...`: the rest of the name is in the next words.
            let is_cut = value.starts_with(['"', '\'']) && !value[1..].ends_with(['"', '\'']);
            let path = plain(value);
            if let Some(fact) = fact
                && path.len() >= SHORTEST_NAME
                && path.contains(['/', '.', '\\'])
                && !is_cut
                && self.named.len() < MOST_FILES
            {
                self.named.push(Named { fact, path: path.to_owned() });
            }
        }
    }

    fn failure(&mut self, number: u64, text: &str) {
        let lower = text.to_ascii_lowercase();
        let is_noted = NOTED.iter().any(|word| lower.contains(word))
            || LOOKING.iter().any(|program| lower.trim_start().starts_with(program))
            || matches!(level(text.as_bytes()), Level::Info | Level::Debug);
        if is_noted {
            return;
        }
        let found = FAILURES.iter().flat_map(|form| form.captures_iter(text.as_bytes()));
        let objects: Vec<String> = found
            .filter_map(|found| Some(plain(std::str::from_utf8(found.get(1)?.as_bytes()).ok()?).to_owned()))
            .collect();
        let is_object = |named: &&Named| objects.iter().any(|object| is_meant(named, object, &lower));
        // A folder of results may hold the model.
        if let Some(Named { fact, .. }) = self.named.iter().filter(is_object).max_by_key(|named| named.path.len())
            && !self.failed.iter().any(|(known, _)| known == fact)
        {
            self.failed.push((fact, Evidence { line: number, text: excerpt(text.as_bytes()) }));
        }
    }
}

/// A path without quotes, `./` and what ends a sentence or a folder.
fn plain(path: &str) -> &str {
    let path = path.trim_matches(['"', '\'', '`', ';', ',']).trim_end_matches(['.', ':', ')']);
    path.trim_start_matches("./").trim_end_matches(['/', '\\'])
}

/// True if the object of a failure is the named file, or what should be written into the named folder.
fn is_meant(named: &Named, object: &str, lower: &str) -> bool {
    if object == named.path {
        return true;
    }
    let Some(below) = object.strip_prefix(&named.path).and_then(|rest| rest.strip_prefix(['/', '\\'])) else {
        return false;
    };
    // What is missing in a folder of results with a name of its own was to be read from there.
    let is_written = ["permission denied", "read-only", "create", "write"].iter().any(|word| lower.contains(word));
    let is_new = lower.contains("no such file") && !below.contains('.');
    named.fact == OUTPUT && !below.contains("Qnn") && (is_written || is_new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(lines: &[&str]) -> Vec<&'static str> {
        let mut roles = Roles::default();
        lines.iter().zip(1..).for_each(|(line, number)| roles.note(number, line.as_bytes()));
        roles.at_end().iter().map(|(fact, _)| *fact).collect()
    }

    const COMMAND: &str = "$ ./netrun --backend /opt/libQnnHtp.so --model ./libnet.so --input_list=list.txt --output_dir /srv/out/ --config cfg/htp.json";

    #[test]
    fn the_option_that_named_a_file_says_what_it_is_for() {
        for (failure, fact) in [
            ("netrun: ./libnet.so: cannot open shared object file: No such file or directory", "named-model-missing"),
            ("error: cannot open 'list.txt'", "named-input-missing"),
            ("FileNotFoundError: [Errno 2] No such file or directory: 'list.txt'", "named-input-missing"),
            ("/srv/out/Result_0: No such file or directory", "named-output-unusable"),
            ("2026-11-23 10:00:01 - run - ERROR - /srv/out/0.npy: Permission denied", "named-output-unusable"),
            ("failed to open /opt/libQnnHtp.so", "named-backend-missing"),
            ("cfg/htp.json does not exist", "named-config-missing"),
        ] {
            assert_eq!(facts(&[COMMAND, failure]), [fact], "{failure}");
        }
    }

    #[test]
    fn a_file_that_is_only_mentioned_is_not_what_fails() {
        for other in [
            "libnet.so loaded",
            "libnet.so.1: No such file",
            "mylibnet.so not found",
            "list.txt.bak not found",
            "dlopen failed: library \"libc++_shared.so\" not found: needed by libnet.so",
            "symbol QnnModel_composeGraphs not found in libnet.so",
            "/srv/out/libQnnHtpV75Stub.so: Permission denied",
            "/srv/out/in0.raw: No such file or directory",
            "[INFO] cfg/htp.json not found",
            "cfg/htp.json not found, using defaults",
            "rm: cannot remove '/srv/out/x': No such file or directory",
        ] {
            assert_eq!(facts(&[COMMAND, other]), Vec::<&str>::new(), "{other}");
        }
        let made = [
            "$ cc -o ./probe probe.c",
            "$ strace -o out/trace.txt ./run",
            "$ git commit -m qnn/run.sh",
            "--output ./output",
        ];
        let of_others = ["./probe: dlopen failed: libQnnHTP.so: No such file", "output: not found"];
        assert_eq!(
            facts(&[&made[..], &of_others].concat()),
            Vec::<&str>::new(),
            "what was made, not what was asked for"
        );
        assert_eq!(facts(&["libnet.so: not found"]), Vec::<&str>::new(), "no command names it");
    }
}
