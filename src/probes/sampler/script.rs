//! Scripts for the device's shell: the loop, and its commands.

use super::plan::{Sources, Split};
use crate::devices::quote;
use crate::probes::counter::{FileRead, How, PID};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const LOOP: &str = include_str!("loop.sh");

/// Maximum number of lines read from a table.
const TABLE_LINES: u32 = 64;
/// Maximum number of files read for a glob.
const GLOB_FILES: u32 = 4096;

/// The whole script. Where `sh` cannot wait on its input (dash), a better shell takes over if there is one.
pub fn script() -> String {
    let text: String = LOOP.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    format!(
        "K={}\n(read -t 1 x </dev/null) 2>/dev/null\n[ $? = 1 ]||for s in bash mksh;do command -v $s >/dev/null 2>&1&&exec \
         $s -c \"$K\";done\neval \"$K\"\n",
        quote(&text)
    )
}

/// A path as a shell word, with `$k` for the watched process.
fn word(path: &str) -> String {
    // Paths with a process come from the catalogue and need no quoting.
    if path.contains(PID) { format!("\"{}\"", path.replace(PID, "$k")) } else { quote(path) }
}

/// Reads source `index` into `v` unchecked.
fn read(file: &FileRead) -> String {
    let path = word(&file.path);
    // Without a limit: with one, mksh does not stop at the end of the line.
    let each = |body: &str| format!("v=;n=0;while read -r a||[ -n \"$a\" ];do {body};done <{path};");
    match &file.how {
        How::Line => format!("v=;read $N -r v <{path};"),
        How::Table => each(&format!("v=$v$R$a;n=$((n+1));[ $n = {TABLE_LINES} ]&&break")),
        How::Prefix(prefix) => format!("g {} {path};", quote(prefix)),
        How::Keys(keys) => {
            let patterns: Vec<String> = keys.iter().map(|key| format!("{}:*", quote(key))).collect();
            let body = format!("v=$v$R$a;n=$((n+1));[ $n = {} ]&&break", keys.len());
            each(&format!("case $a in {}){body};;esac", patterns.join("|")))
        }
        // The catalogue's own glob, to be expanded.
        How::Glob => format!(
            "v=;n=0;for b in {};do a=;read $N -r a <\"$b\";v=\"$v $a\";n=$((n+1));[ $n = {GLOB_FILES} ]&&break;done;case \
             $v in *[0-9]*);;*)v=;;esac;",
            file.path
        ),
        How::Service => String::new(),
    }
}

/// Reads source `index` and appends it to the line if changed.
fn sample(index: usize, file: &FileRead) -> String {
    let path = match &file.how {
        How::Glob => quote(file.path.split_once('*').map_or("/", |(folder, _)| folder)),
        _ => word(&file.path),
    };
    let read = read(file);
    // All digits is by far the most common case, and needs no function.
    format!(
        "{read}case $v in \"$o{index}\");;''|*[!0-9]*)o{index}=$v;c {index} {path};;*)o{index}=$v;L=$L${{S}}{index}=$v;;esac;"
    )
}

/// Clears all contents, so that the next tick sends them again.
fn forget(sources: &Sources) -> String {
    let mut text = "G=".to_owned();
    for index in 0..sources.files().len() {
        let _ = write!(text, ";o{index}='~~'");
    }
    text
}

/// Commands that time every source that is a file and does not hang, followed by the line with `token`.
pub fn timing(sources: &Sources, hanging: &BTreeSet<usize>, token: u64) -> String {
    let mut text = String::new();
    for (index, file) in sources.timed().filter(|(index, _)| !hanging.contains(index)) {
        let read = read(file);
        let _ = writeln!(
            text,
            "$P \"k${{S}}{index}\";e=$EPOCHREALTIME;read -r u x </proc/uptime;{read}$P \"K${{S}}{index}$S$e$S$EPOCHREALTIME$S$u\";read -r \
             u x </proc/uptime;$P \"V${{S}}{index}$S$u\""
        );
    }
    let _ = writeln!(text, "$P \"J${{S}}{token}\"");
    text
}

/// Announces a source about to be read.
fn mark(index: usize) -> String {
    format!("$P \"k${{S}}{index}\";")
}

/// Commands that make the loop read what `split` says. With `marked`, it names every source before reading
/// it, so that one that hangs is identified.
pub fn groups(sources: &Sources, split: &Split, period_us: u64, marked: bool) -> String {
    let one = |index: usize| {
        let sample = sample(index, sources.files().get(index)?);
        Some(if marked { mark(index) + &sample } else { sample })
    };
    let body = |indices: &[usize]| -> String { indices.iter().filter_map(|index| one(*index)).collect() };
    let [fast, tenth, second] = &split.groups;
    format!(
        "{}\nf(){{ {}:;}}\nt(){{ {}:;}}\ns(){{ {}:;}}\np={period_us};now;m=$n;h=;d=\n",
        forget(sources),
        body(fast),
        body(tenth),
        body(second)
    )
}

/// Commands for the second stream, which reads the slow sources one after another.
pub fn slow(sources: &Sources, split: &Split) -> String {
    let (mut files, mut services) = (String::new(), String::new());
    for index in &split.slow {
        let Some(file) = sources.files().get(*index) else { continue };
        let stamp = "e=$EPOCHREALTIME;read -r u x </proc/uptime;i=$((i+1));";
        if file.how == How::Service {
            let service = quote(&file.path);
            let _ = write!(
                services,
                "{stamp}$P \"B${{S}}{index}$S$e$S$u\";dumpsys {service} 2>&1 </dev/null;$P \"\";$P \"E${{S}}{index}\";B;"
            );
        } else {
            let sample = sample(*index, file);
            let mark = mark(*index);
            let _ = write!(files, "{mark}{stamp}L=;o{index}='~~';{sample}$P \"T$S$i$S$e$S$u${{S}}w$L\";B;");
        }
    }
    let (forget, period_us, rounds) = (forget(sources), split.slow_period_us, split.service_rounds);
    format!("{forget}\nf(){{ {files}:;}}\ns(){{ {services}:;}}\np={period_us};h={rounds};l=Y\ngo\n")
}
