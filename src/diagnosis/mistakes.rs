//! Reads what a program of anybody's says as it ends: what is wrong (a file is missing, a size does not fit, an option is
//! unknown), and with what (a model, an input, the results). Together they are a cause, in whatever words.

use super::catalogue::Certainty;
use super::foreign::is_foreign;
use super::pattern::regex;
use super::statements::{Level, level};
use regex::bytes::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Lines at the end of a log that are read.
const LAST_LINES: usize = 40;
/// Lines between what failed first and what that led to.
const APART: usize = 5;
/// Lines at the end that need not call themselves errors.
const CLOSING_LINES: usize = 8;
const FEWEST_LINES: usize = 2;
/// Lines at the end in which a program says no more than that it failed.
const HIDDEN_LINES: usize = 3;
/// Longer lines say more.
const SHORT: usize = 160;
/// Longer lines are dumps.
const LONGEST: usize = 1000;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Full,
    Memory,
    Version,
    Name,
    Count,
    Size,
    Empty,
    Denied,
    NoFolder,
    Missing,
    Unset,
    Unreadable,
    Key,
    Unknown,
    Time,
}

/// What it is wrong with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
    Results,
    Option,
    List,
    Backend,
    Input,
    Config,
    Model,
}

/// In the order in which they are looked for: the plainest words first.
const WRONG: [(Wrong, &str); 15] = [
    (
        Wrong::Full,
        r"no space left|short write|disk (is )?full|file too large|enospc|quota exceeded|wrote (only )?\d+ of \d+|\d+ requested and \d+ written",
    ),
    (
        Wrong::Memory,
        r"out of memory|bad_alloc|outofmemory|cannot allocate|could not allocate|too many open files|emfile|: error 24\b|cannot create (a )?thread|\b(worker|thread|fork|spawn)\b.{0,40}resource temporarily unavailable",
    ),
    (
        Wrong::Version,
        r"\b(api|abi|interface)\b.{0,12}v?\d+\.\d+.{0,40}(wants?|needs?|requires?d?|expect\w*|>=|too (old|new)|at least|or later|offers)|\b(needs?|wants?|requires?) .{0,20}\b(api|abi)\b.{0,12}\d+\.\d+|\b(api|abi)\b ?[<>]?=+ ?\d+\.\d+.{0,20}fail|\bno (suitable |matching )?(provider|interface)\b.{0,30}\b(api|abi|version)\b.{0,8}\d+\.\d+",
    ),
    (
        Wrong::Name,
        r"\b(no|unknown) (graph )?(input|output|tensor) (named|called|of that name|with (the )?name)|\b(tensor|input|output)s? ?(name)?\W{0,3}.[\w:./-]+.{0,40}\b(has|have|known|available|knows)( only)?\b ?(:|\[|names)\s*['\x22\[a-z_]|is (none of|not among|not one of) (the )?(inputs|outputs|tensors|\[)|not an? (graph )?(input|output|tensor) (of|name)",
    ),
    (
        Wrong::Count,
        r"\b\d+ ?(files?|inputs?|tensors?|arrays?|buffers?|columns?|entries)(\(s\))?\b.{0,60}\b(takes?|needs?|wants?|expects?|expected|has|requires?|instead of)\b.{0,20}\d|\b(takes?|needs?|wants?|expects?|expected|has|requires?)\b ?\w* \d+ (graph )?(files?|inputs?|tensors?|arrays?|buffers?)\b.{0,40}\b(got|given|but|provided|found|were|supplied|only|instead)\b.{0,20}\d|\b\d+ of \d+ (inputs?|tensors?|files?) (supplied|given|provided|found)\b|\b\d+ (--?)?inputs? (given|passed|supplied|provided)\b.{0,20}\b(graph|model|network) (has|takes|wants|needs|expects) \d|\bnothing given for (input|tensor)\b|\b\d+ inputs? expected\b",
    ),
    (
        Wrong::Size,
        r"\b\d+ ?(bytes?|b|elements?|values?|floats?|samples?|items?)\b.{0,60}\b(needs?|wants?|expects?|expected|requires?d?|should|takes?|instead of|but|not)\b.{0,30}\d+ ?(bytes?|b|elements?|values?|floats?|samples?|items?|\W*$|[),;.])|\b(needs?|wants?|expects?|expected|requires?d?|should be)\b.{0,20}\d+ ?(bytes?|b|elements?|values?|floats?|samples?)\b.{0,40}\b(got|has|have|holds|found|is|was|were|read|given|actual)\b.{0,12}\d|\bgot[=: ]+\d+\b.{0,20}\b(want|expect|need)\w*[=: ]+\d+|\bsize\W{0,2}\d+\W{0,2} does not match\b|size (mismatch|differs)|wrong size|bad size|unexpected size",
    ),
    (
        Wrong::Empty,
        r"\b(is|are|was) empty\b|: empty\b|\bempty (file|list|model|config\w*|input)\b|\bno (inputs?|inferences|entries|lines|frames|files|samples|images) (in|found|match|to|listed|left)\b|\b(holds|has|contains) no (rows|lines|entries|inputs|frames|samples)\b|\bno usable (inputs?|frames?|files?|samples?|images?)\b|\b0 (inputs?|entries|lines|frames|files|samples|images)(\(s\))? (in|found|match|of|from)|\b(0|zero) bytes\b|nothing to (do|run|process)",
    ),
    (
        Wrong::Denied,
        r"permission denied|operation not permitted|access(accessdenied| is| was)? denied|accessdenied|eacces|eperm\b|read-only file|is read-only|not (writable|readable)\b|\(os error (1|13|30)\)",
    ),
    (Wrong::NoFolder, r"not a directory|is a directory|enotdir|eisdir|file exists|\(os error (17|20|21)\)"),
    (
        Wrong::Missing,
        r"no such file|not found|nosuchfile|filenotfound|enoent|does not exist|doesn.t exist|(cannot|can.t|could not|couldn.t|unable to|failed to) (find|locate|open|read)\b|not there\b|\(os error 2\)|cannot open shared object|check failed: .{0,40}\b(good|is_open|f?open)\(",
    ),
    (
        Wrong::Unset,
        r"\b(not|un)[ -]?set\b|must be (set|given|specified|provided)|variable not (found|defined)|\bno .[\w.-]+. in (the )?(manifest|config\w*|file|settings)|--[\w-]+ (is|are) required\b|missing -{1,2}[a-z]|unbound variable|missing (required )?(option|argument|parameter|key|field|variable|setting)\b|requires? (an?|one) (argument|value)|not (given|specified|provided|configured)\b|\bno (backend|model|input\w*|graph|config\w*|output\w*) (given|specified|set|configured)|needs --|requires --|without --|\bno (output|input|model|backend|config|graph)\w* \(-{1,2}[a-z]|[\x27\x22`][\w-]+[\x27\x22`] (is|are) required\b|\b[A-Z]+_[A-Z_]+: (set |must point|please)|\b(wants|takes|needs) (a )?MODEL\b",
    ),
    (
        Wrong::Unreadable,
        r"parse error|(failed to|cannot|can.t|could not|unable to) parse|parsing|malformed|not valid (json|yaml|toml)|invalid (json|yaml|toml)|is not a(n integer| number| valid (number|integer|float))|invalid (digit|number|integer|float)|syntax ?error|unexpected (token|character|end|eof)|trailing comma|expected .key = value.|missing comma|unterminated|unquoted|control character|duplicate key|unknown keyword|^\W*(\[[\d. ]+\] *)?(\w+:? +){0,3}[\w./-]+\.(json|ya?ml|toml|ini|cfg|conf):\d+(:\d+)?: |expected .{1,12}, found|expecting (value|property|.,. delimiter)",
    ),
    (
        Wrong::Key,
        r"\bkeyerror\W{1,4}[a-z_]{3,}\x27?\W*$|(available|failed|error|exception|false)\W{1,3}\x27[a-z_]{3,}\x27\W*$|\bnot an? bool(ean)?\b",
    ),
    (
        Wrong::Unknown,
        r"\bunknown (\w+ )?(option|key|field|setting|mode|level|argument|flag|dtype|backend|command|value|profile|precision|layout|target|provider|chip|chipset|soc)\b|unrecogni[sz]ed|no such (option|key|field|setting|mode|level)|not (allowed|supported) (here|value)|must be one of|invalid (value|choice|option|mode|level|key)\b|unexpected (key|field|argument|option)|bad (option|value|argument)|config\w*[ _](was )?(rejected|refused)",
    ),
    (
        Wrong::Time,
        r"timed out|\bno (result|answer|response|reply|output)\b.{0,20}\b(within|in|after|for) \d|\b(unresponsive|not responding) for \d|deadline ?exceeded|watchdog\b.{0,90}(abort|kill|restart|terminat)|timeoutex|timeout(error)?:|time limit exceeded|deadline (of \w+ ?\w* )?(passed|exceeded|missed)|took too long|\bbudget\b.{0,20}(used up|exceeded|exhausted)|\b(status|exit|code|error|rc)\W{1,3}124$",
    ),
];

const OBJECTS: [(Object, &str); 7] = [
    (
        Object::Results,
        r"\b(writ(e|es|ing|ten)|sav(e|es|ing|ed)|stor(e|es|ing)|creat(e|es|ing)|dump(s|ing)?|mkdir|export(s|ing)?|report)\b|\b(output|results?|report|dump)s? ?(folder|dir\w*|path|file)|\b(out|outputs?|results?|reports?|dumps?)[/\\]",
    ),
    (
        Object::Option,
        r"(^|[\s'\x22`])--?[a-z][\w-]*|\b(option|argument|flag|environment|variable|parameter)\b|\b[a-z]+_[a-z_]+ (is )?(not set|unset|must be set)",
    ),
    (Object::List, r"\binput[ _-]?list\b|list\w*\.txt\b|\b(in|of|from) (the )?(input )?list\b"),
    (
        Object::Backend,
        r"\blibqnn(htp|cpu|gpu|dsp|ir|saver|lpai)?\w*\.so|\bqnn(htp|cpu|gpu)\w*\.dll|\bbackend\b.{0,30}\.(so|dll)",
    ),
    (
        Object::Input,
        r"\.(raw|npy|npz|jpe?g|png|bmp|wav|pgm|ppm|gif|webp|flac|mp[34]|h5|csv)\b|\b(inputs?|frames?|samples?|images?|feeds?)\b",
    ),
    (
        Object::Config,
        r"\.(json|ya?ml|toml|ini|cfg|conf|properties|env)\b|\b(config\w*|manifest|settings|recipe|case file)\b",
    ),
    (
        Object::Model,
        r"\.(onnx|dlc|tflite|pte|mnn|gguf|bin|serialized|pb|pth?|ort|safetensors)\b|\b(models?|network|context|weights|checkpoint)\b",
    ),
];

static FINDERS: LazyLock<Option<Finders>> = LazyLock::new(|| {
    let all = |texts: &[&str]| texts.iter().map(|text| regex(text).ok()).collect::<Option<Vec<_>>>();
    Some(Finders {
        wrong: all(&WRONG.map(|(_, text)| text))?,
        objects: all(&OBJECTS.map(|(_, text)| text))?,
        link: regex(r"^\s*(\d+: |caused by:?|cause:|because:?|reason:|what\(\):)").ok()?,
        announces: regex(r"^\s*caused by:\s*$").ok()?,
        warns: regex(r"\bwarn(ing)?\b").ok()?,
        fails: regex(r"\b(err(or)?|crit(ical)?|fatal)\b").ok()?,
        head: regex(r"^\W*((error|fatal|panic|exception)\b|terminate called|.{0,60}\b(error|fatal|critical):)").ok()?,
        aside: regex(r#"^\s*$|^\s+at |^\s*File "|^\s{2,}--?\w|^\s*usage\b|^\s*\^+\s*$|^\s*\.\.\. \d+ more"#).ok()?,
        hidden: regex(concat!(
            r"\b(npu|htp|qnn|dsp|hexagon|accelerator|engine|session|backend|runtime|inference|delegate|models?|workers?|runner|child|process|pipeline|step|steps)\b[^:;]{0,40}",
            r"\b(failed|not available|unavailable|unusable|could not be (initiali[sz]ed|loaded|created|opened|started|run|quanti[sz]ed|converted|compiled|used)",
            r"|(exited|ended) with (exit )?(status|code) [1-9]\d*|out of service|not servable|returned (status|code|error|rc) ?-?[1-9]\d*|returned -[1-9]\d*|died|gave up|was not written|crashed)\b",
            r"|\bnothing usable\b|\bfailed in step\b|\bfail rc=[1-9]|\b(no|open|start|create)_session\b|session_(open_)?failed|composing \S+ failed|\bfailed[,;]? \(?see \S* ?log",
            r"|\b[1-9]\d* of \d+ (models?|jobs?|files?) (not|failed|could not)"
        ))
        .ok()?,
        unharmed: regex(r"\b(0|no|none|zero|never|not) (\w+ )?(failed|crashed|died|unavailable|unusable)|not (needed|wanted|used)").ok()?,
        shells: regex(r"^(note|warning|hint|info|cat|ls|rm|cp|mv|find|stat|mkdir|touch|head|tail|grep|sed|awk|ba?sh|zsh|env|make|curl|wget|pip3?|git|ssh|scp|tar|gzip|unzip|python3?|perl|node|java|cannot):|^\S*(error|exception):").ok()?,
        said: regex(r"^\.?[/a-z][\w./-]*: |^(\$ .*)?\W*\d{2,4}[-:/.]\d\d\S*.{0,20}\b(error|fatal|critical)\b|^\{.*\x22(level|lvl)\x22: ?\x22(error|fatal|critical)|^\S+ +\S+ \S+ error |^\[[\d. ]+\] +(error|fatal)\b").ok()?,
        idle: regex(r"queue|buffer|spool|cache|pool|sleeping|waiting|idle").ok()?,
        list: regex(r"\.txt\b.{0,12}\b(no|empty|0|zero)\b").ok()?,
        place: regex(r"[\w/-]+\.[a-z]\w*:\d+: ").ok()?,
        own_library: regex(r"[./\w-]+/lib\w+\.so: cannot open shared object").ok()?,
        library: regex(r"\.(so|dll)$").ok()?,
        no_file: regex(r"filenotfounderror|\[errno 2\]|enoent").ok()?,
        chip: regex(r"unknown (\w+ )?(chip|chipset|soc)\b").ok()?,
        remark: regex(r"warn|default|instead|falling back|fall back|ignor|skipp|optional|retry|\bif \w|\brm: |checking for|^\s*[|+]|\$\{|%[sdr]|verified|\brocm\b|\bcuda\b|npm err|:\d+:\d+: (fatal )?error|assert|\[(begin|prompt)\]|level zero|ze_result|npu_platform|\b(type|attribute|key|index|name|recursion)error\b|torchgen|^\s*\d+\s{2,}|terminating due to|openvino|level.zero").ok()?,
        value: regex(r#""(?:msg|message|err|error|detail|details|exc|exception|reason|event|evt|what|cause|name|path|file)"\s*:\s*"((?:[^"\\]|\\.)*)""#).ok()?,
        missing: regex(r#""missing"\s*:\s*\[?"([\w.-]+)"#).ok()?,
        names: regex(r"[\w$~./\\-]*[\w-]+\.[a-z]\w{0,10}").ok()?,
    })
});

struct Finders {
    wrong: Vec<Regex>,
    objects: Vec<Regex>,
    /// A line that goes on with the error before it.
    link: Regex,
    /// It says that the next line goes on.
    announces: Regex,
    /// A warning by its own word.
    warns: Regex,
    /// An error by its own word.
    fails: Regex,
    head: Regex,
    /// Frames, usage, blanks.
    aside: Regex,
    chip: Regex,
    /// A text that may be a list of inputs.
    list: Regex,
    /// A file and a line of it.
    place: Regex,
    /// A shared library of the user's, by its path.
    own_library: Regex,
    /// A shared library.
    library: Regex,
    /// An exception of a file that is not there.
    no_file: Regex,
    /// What may be empty.
    idle: Regex,
    /// Something failed, and nothing says why.
    hidden: Regex,
    /// Nothing of that kind happened.
    unharmed: Regex,
    /// `tool: error: ...`.
    said: Regex,
    /// Words before a colon that are no program of the user's.
    shells: Regex,
    /// It is only a remark, or code.
    remark: Regex,
    /// A text in an object of a JSON log.
    value: Regex,
    names: Regex,
    /// What an object of a JSON log calls missing.
    missing: Regex,
}

/// A cause that the end of a log tells in words of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Id in the catalogue.
    pub cause: &'static str,
    pub certainty: Certainty,
    /// Its line, counted from the last one, which is 0.
    pub from_end: usize,
}

/// What the last lines of a log, the last one first, say went wrong. `is_over` ends the reading: the lines before it
/// were followed by a success.
pub fn told<'a>(lines: impl Iterator<Item = &'a [u8]>, is_over: impl Fn(usize) -> bool) -> Option<Mistake> {
    let finders = FINDERS.as_ref()?;
    let mut count = 0;
    let ends: Vec<(usize, &[u8])> = lines
        .inspect(|line| count += usize::from(!line.trim_ascii().is_empty()))
        .enumerate()
        .take(LAST_LINES)
        .take_while(|(from_end, _)| !is_over(*from_end))
        .filter(|(_, line)| line.len() <= LONGEST && !finders.aside.is_match(line) && !is_foreign(line))
        .collect();
    let ends = links(finders, &ends);
    // A single line may be a sentence of a manual.
    let is_alone = count < FEWEST_LINES;
    if is_alone
        && !ends.first().is_some_and(|end| finders.said.is_match(end.line) && !finders.shells.is_match(end.line))
    {
        return None;
    }
    let mut found: Option<Mistake> = None;
    for (at, &Closing { from_end, line, is_link }) in ends.iter().enumerate() {
        if found.as_ref().is_some_and(|found| from_end - found.from_end > APART) {
            break;
        }
        // A service passes on as a warning what the program said that it ran, and then calls it a failure.
        let is_warning = matches!(level(line), Level::Warning | Level::Unsaid) && finders.warns.is_match(line);
        let is_failure = match level(line) {
            _ if is_warning => {
                at > 0
                    && finders.fails.is_match(ends[at - 1].line)
                    && !finders.remark.is_match(&finders.warns.replace(line, &b""[..]))
            }
            Level::Error => !finders.remark.is_match(line),
            Level::Unsaid => at < CLOSING_LINES && !finders.remark.is_match(line),
            _ => false,
        };
        if !is_failure {
            continue;
        }
        let mut text = finders.message(line).into_owned();
        // A chain of errors reads as one sentence, from its first line to its last.
        if is_link {
            for before in ends[at + 1..].iter().take(4) {
                text = [&finders.message(before.line)[..], b"; ", &text].concat();
                if !before.is_link {
                    break;
                }
            }
        }
        if let Some((cause, certainty)) = finders.cause(&text) {
            found = Some(Mistake { cause, certainty, from_end });
            // The links of a chain after this one are part of it.
            if is_link || finders.head.is_match(line) {
                break;
            }
        }
    }
    found
}

/// The line, counted from the last one, in which a program ends with no more than that its model, engine or step failed.
pub fn hidden<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<usize> {
    let finders = FINDERS.as_ref()?;
    let own = lines.enumerate().filter(|(_, line)| !finders.aside.is_match(line) && !is_foreign(line));
    let mut ends = own.take(HIDDEN_LINES).filter(|(_, line)| line.len() <= SHORT);
    let is_hidden = |line: &[u8]| {
        let text = finders.message(line);
        finders.hidden.is_match(&text) && !finders.unharmed.is_match(&text) && !finders.remark.is_match(&text)
    };
    ends.find(|(_, line)| is_hidden(line)).map(|(from_end, _)| from_end)
}

/// A line at the end.
struct Closing<'a> {
    /// Its place, counted from the last line, which is 0.
    from_end: usize,
    line: &'a [u8],
    /// It goes on with the error before it.
    is_link: bool,
}

/// The lines at the end, without those that only announce the next link of a chain.
fn links<'a>(finders: &Finders, ends: &[(usize, &'a [u8])]) -> Vec<Closing<'a>> {
    let announces = |line: &[u8]| finders.announces.is_match(line);
    let is_announced = |at: usize| ends.get(at + 1).is_some_and(|(_, before)| announces(before));
    let said = ends.iter().enumerate().filter(|(_, (_, line))| !announces(line));
    said.map(|(at, &(from_end, line))| Closing {
        from_end,
        line,
        is_link: finders.link.is_match(line) || is_announced(at),
    })
    .collect()
}

impl Finders {
    /// The message of a line: of an object of a JSON log, its texts.
    fn message<'a>(&self, line: &'a [u8]) -> Cow<'a, [u8]> {
        if !line.trim_ascii_start().starts_with(b"{") {
            return Cow::Borrowed(line);
        }
        let texts: Vec<&[u8]> =
            self.value.captures_iter(line).filter_map(|found| Some(found.get(1)?.as_bytes())).collect();
        if texts.is_empty() {
            return Cow::Borrowed(line);
        }
        let mut text = texts.join(&b": "[..]);
        if let Some(missing) = self.missing.captures(line).and_then(|found| found.get(1)) {
            text.extend([b": missing option ", missing.as_bytes()].concat());
        }
        Cow::Owned(text)
    }

    fn object(&self, text: &[u8], of: &[Object]) -> Option<Object> {
        let has = |object: &Object| {
            OBJECTS.iter().zip(&self.objects).any(|((known, _), finder)| known == object && finder.is_match(text))
        };
        of.iter().copied().find(has)
    }

    fn cause(&self, text: &[u8]) -> Option<(&'static str, Certainty)> {
        use Object::{Backend, Config, Input, List, Model, Option as Opt, Results};
        let wrong =
            WRONG.iter().zip(&self.wrong).find(|(_, finder)| finder.is_match(text)).map(|((wrong, _), _)| *wrong)?;
        let sure = |cause| Some((cause, Certainty::Sure));
        let likely = |cause| Some((cause, Certainty::Likely));
        match wrong {
            Wrong::Full => sure("disk-full"),
            Wrong::Memory => sure("host-out-of-memory"),
            Wrong::Version => sure("interface-version-mismatch"),
            Wrong::Name => sure("input-name-mismatch"),
            Wrong::Count => sure("input-count"),
            Wrong::Time => likely("timed-out"),
            Wrong::Size => {
                match self.object(&self.named(text), &[Input, Model]).or_else(|| self.object(text, &[Input, Model])) {
                    Some(Model) => likely("model-file-invalid"),
                    Some(_) => sure("input-size-mismatch"),
                    None => None,
                }
            }
            Wrong::Key => likely("config-invalid"),
            Wrong::Empty if self.idle.is_match(text) => None,
            Wrong::Empty if self.list.is_match(text) => sure("input-missing"),
            Wrong::Empty => match self.object(text, &[List, Config, Model, Input])? {
                List => sure("input-missing"),
                Config => sure("config-invalid"),
                Model => sure("model-file-invalid"),
                _ => likely("input-missing"),
            },
            Wrong::Denied | Wrong::NoFolder | Wrong::Missing => {
                if let Some(Results) = self.object(text, &[Results]) {
                    return sure("output-folder-unusable");
                }
                let named = self.named(text);
                let object = self
                    .object(&named, &[List, Backend, Input, Config, Model])
                    .or_else(|| self.object(text, &[List, Backend]))
                    .or_else(|| {
                        self.object(text, &[Model])
                            .filter(|_| wrong == Wrong::NoFolder || self.library.is_match(&named))
                    })
                    .or_else(|| self.own_library.is_match(text).then_some(Model))
                    .or_else(|| {
                        self.object(text, &[Config]).filter(|_| named.is_empty() && self.no_file.is_match(text))
                    })?;
                match (object, wrong) {
                    (List | Input, _) => sure("input-missing"),
                    (Backend, _) => sure("backend-library-not-found"),
                    (Config, _) => sure("config-invalid"),
                    (Model, Wrong::NoFolder) => sure("model-file-invalid"),
                    (Model, _) => sure("model-missing"),
                    _ => None,
                }
            }
            Wrong::Unset => sure("option-missing"),
            Wrong::Unreadable => match self.object(text, &[Config, Model, Opt])? {
                Config => sure("config-invalid"),
                Model => sure("model-file-invalid"),
                _ => sure("option-unknown"),
            },
            Wrong::Unknown if self.chip.is_match(text) => sure("soc-unknown-to-sdk"),
            Wrong::Unknown if self.place.is_match(text) => sure("config-invalid"),
            Wrong::Unknown => match self.object(text, &[Config, Opt]).unwrap_or(Opt) {
                Config => sure("config-invalid"),
                _ => sure("option-unknown"),
            },
        }
    }

    /// The names of files in a text.
    fn named(&self, text: &[u8]) -> Vec<u8> {
        self.names.find_iter(text).map(|name| name.as_bytes()).collect::<Vec<_>>().join(&b' ')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(log: &str) -> Option<&'static str> {
        let lines: Vec<&[u8]> = log.lines().rev().map(str::as_bytes).collect();
        told(lines.iter().copied(), |_| false).map(|mistake| mistake.cause)
    }

    #[test]
    fn what_is_wrong_and_with_what_make_a_cause_in_any_words() {
        for (log, wanted) in [
            ("up\nrunner: data/a.raw: 32 bytes, need 8\n", "input-size-mismatch"),
            ("up\n[   0.008] E run: sample 0: frame.npy holds 192 bytes, 'image' wants 768\n", "input-size-mismatch"),
            ("up\nrunner: models/tiny.bin: empty\n", "model-file-invalid"),
            ("up\nrunner: models: Is a directory\n", "model-file-invalid"),
            ("up\n[ERROR] Line 1 of the list has 2 file(s), the graph takes 1\n", "input-count"),
            ("up\n[ERROR] list refers to tensor 'input_1'; the graph has: x\n", "input-name-mismatch"),
            ("up\n[ERROR] Could not create output directory a/out: Not a directory\n", "output-folder-unusable"),
            ("up\nrunner: QNN_BACKEND not set and no -b\n", "option-missing"),
            ("up\nrunner: core api 2.36, want >= 2.41\n", "interface-version-mismatch"),
            ("up\n[critical] configuration: key 'threads': 'two' is not a number\n", "config-invalid"),
            ("up\nshort write to /dev/full (0 of 45056)\n", "disk-full"),
            (
                "Error: could not load network\n\nCaused by:\n    0: opening models/seg.bin\n    1: No such file or directory (os error 2)\n",
                "model-missing",
            ),
            (
                "Error: failed to store result\n\nCaused by:\n    0: writing /sys/y.raw\n    1: Permission denied (os error 13)\n",
                "output-folder-unusable",
            ),
            (
                "{\"level\":\"info\",\"msg\":\"up\"}\n{\"level\":\"error\",\"msg\":\"no config\",\"err\":\"cfg/a.json not found\"}\n",
                "config-invalid",
            ),
            ("run: error: perf_profile: unknown profile 'turbo'\n", "option-unknown"),
        ] {
            assert_eq!(cause(log), Some(wanted), "{log}");
        }
    }

    #[test]
    fn a_program_that_says_no_more_than_that_it_failed_hides_the_reason() {
        let hidden = |log: &str| super::hidden(log.lines().rev().map(str::as_bytes));
        for log in [
            "up\nengine: npu init failed\n",
            "npu-run: inference process exited with status 1\nbye\n",
            "{\"level\": \"fatal\", \"event\": \"no_session\"}\n",
            "[cascade] nothing usable\n",
            "QNN engine returned status -1\n",
        ] {
            assert!(hidden(log).is_some(), "{log}");
        }
        for log in [
            "backend libQnnCpu.so usable\n",
            "the model returned 10 classes\n",
            "3 models, 0 failed\n",
            "no worker failed\n",
            "session up\n",
            "engine failed\none\ntwo\nthree\n",
        ] {
            assert_eq!(hidden(log), None, "{log}");
        }
    }

    #[test]
    fn chains_warnings_and_single_lines_of_a_tool_are_read() {
        for (log, wanted) in [
            (
                "up\nError: failed to write out/y.raw\n\nCaused by:\n    No such file or directory (os error 2)\n",
                "output-folder-unusable",
            ),
            ("up\n<warn> run: unrecognized option '--perf'\n<error> job failed\n", "option-unknown"),
            ("ctxgen: no output (-o)\n", "option-missing"),
            ("up\nrun: no provider with core API >= 2.45 (has 2.36.0)\n", "interface-version-mismatch"),
            ("up\nrun: worker gave no answer within 4 s, killed\n", "timed-out"),
            ("up\nrun: npu.json:5: trailing comma\n", "config-invalid"),
            ("{\"lvl\": \"fatal\", \"event\": \"config\", \"missing\": \"backend\"}\n", "option-missing"),
        ] {
            assert_eq!(cause(log), Some(wanted), "{log}");
        }
        assert_eq!(cause("cat: a.raw: No such file or directory\n"), None);
    }

    #[test]
    fn remarks_code_and_lines_of_libraries_tell_of_no_mistake() {
        for log in [
            "a.raw not found, using the default\nup\n",
            "WARNING: settings.json does not exist\nup\n",
            "raise RuntimeError(\"context binary not found, please compile first\")\n",
            "2025-11-20 08:31:52.701 [E:onnxruntime:, env.cc:254] x.onnx does not exist\nup\n",
            "10-12 17:42:33.137  3032  3035 V app: fopen x.so: not found\nup\n",
            "main.cc:30:10: fatal error: frames.raw: No such file or directory\nup\n",
            "up\ndone\n",
            "",
        ] {
            assert_eq!(cause(log), None, "{log}");
        }
    }

    #[test]
    fn what_came_before_a_success_is_over() {
        let lines: [&[u8]; 3] = [b"up", b"ready", b"runner: models/tiny.bin: empty"];
        assert_eq!(told(lines.into_iter(), |from_end| from_end >= 1), None);
        assert_eq!(told(lines.into_iter(), |_| false).map(|mistake| mistake.from_end), Some(2));
    }
}
