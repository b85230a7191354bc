//! What regular expressions do not find well: multi-line keys, and folders.

use std::borrow::Cow;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
/// Longest key or certificate, in bytes, including what a log prints before each line.
const MOST_BYTES: usize = 64 << 10;
/// Folders that exist on every system or that an SDK creates: their contents explain the failure.
const KNOWN: [&str; 26] = [
    "/apex/",
    "/bin/",
    "/boot/",
    "/dev/",
    "/etc/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/libexec/",
    "/odm/",
    "/odm_dlkm/",
    "/oem/",
    "/opt/qcom/",
    "/opt/qti/",
    "/product/",
    "/proc/",
    "/sbin/",
    "/sys/",
    "/system/",
    "/system_ext/",
    "/usr/",
    "/vendor/",
    "/vendor_dlkm/",
    "/home/",
    "/Users/",
    "/linkerconfig/",
];
/// For these, only the beginning is known.
const BEGINNINGS: [&str; 6] =
    ["/data/local/tmp/", "/data/data/", "/data/app/", "/sdcard/", "/storage/emulated/0/", "/tmp/"];

/// The text without PEM keys and certificates, and how many there were. A truncated one ends where the text
/// no longer looks like one.
pub fn without_keys(text: &str) -> (Cow<'_, str>, usize) {
    let mut out = String::new();
    let (mut from, mut count) = (0, 0);
    while let Some(at) = text[from..].find(BEGIN).map(|at| from + at) {
        out.push_str(&text[from..at]);
        out.push_str("<key>");
        count += 1;
        from = end_of_key(text, at);
    }
    if count == 0 {
        return (Cow::Borrowed(text), 0);
    }
    out.push_str(&text[from..]);
    (Cow::Owned(out), count)
}

fn end_of_key(text: &str, begin: usize) -> usize {
    let mut limit = (begin + MOST_BYTES).min(text.len());
    while !text.is_char_boundary(limit) {
        limit -= 1;
    }
    let body = begin + BEGIN.len();
    // Another key that begins before this one ends: this one was truncated.
    let until = text[body..limit].find(BEGIN).map_or(limit, |at| body + at);
    if let Some(end) = text[body..until].find(END).map(|at| body + at + END.len()) {
        let tail = &text[end..];
        return end + tail.find("-----").filter(|at| *at < 64).map_or(0, |at| at + 5);
    }
    let mut end = begin;
    for (number, line) in text[begin..until].split_inclusive('\n').enumerate() {
        // A line of a key contains a long base64 word, whatever the log prints before it.
        let is_part = line.split_ascii_whitespace().any(|word| {
            word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=\\\"".contains(&byte))
        });
        if number > 0 && !is_part {
            break;
        }
        end += line.len();
    }
    // Keep the line end.
    if text[..end].ends_with('\n') { end - 1 } else { end }
}

/// The text without folders that someone named, and how many there were. File names and well-known folders
/// stay.
pub fn without_folders(text: &str) -> (Cow<'_, str>, usize) {
    let is_border = |c: char| c.is_whitespace() || "\"'`(=,[<>|{".contains(c);
    let mut out = String::new();
    let (mut from, mut at, mut count) = (0, 0, 0);
    while let Some(slash) = text[at..].find('/').map(|slash| at + slash) {
        let before = text[..slash].chars().next_back();
        // `x: /a` has a space before it; `file:///a` is a path, `https://a` has already been handled.
        let begins = before.is_none_or(is_border) || text[..slash].ends_with("file://") || before == Some(':');
        let rest = &text[slash..];
        let length = rest.find(|c: char| (is_border(c) && c != '=') || ":;)]}".contains(c)).unwrap_or(rest.len());
        let path = &rest[..length];
        at = slash + if path.starts_with("//") { 2 } else { length.max(1) };
        if !begins || path.starts_with("//") || KNOWN.iter().any(|known| path.starts_with(known)) {
            continue;
        }
        let start = BEGINNINGS
            .iter()
            .find(|known| path.starts_with(**known))
            .map_or_else(|| path[1..].find('/').map_or(path.len(), |second| second + 2), |known| known.len());
        // The folders between the beginning and the file.
        let Some(last) = path.rfind('/').filter(|last| *last >= start) else { continue };
        out.push_str(&text[from..slash + start]);
        out.push_str("<path>");
        from = slash + last;
        count += 1;
    }
    if count == 0 {
        return (Cow::Borrowed(text), 0);
    }
    out.push_str(&text[from..]);
    (Cow::Owned(out), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_whole_and_what_follows_stays() {
        let key =
            format!("-----BEGIN RSA PRIVATE KEY-----\n{}\nshort+/=\n-----END RSA PRIVATE KEY-----", "Ab1+".repeat(16));
        assert_eq!(without_keys(&format!("a\n{key}\nb {key} c")).0, "a\n<key>\nb <key> c");
        let logged = key.replace('\n', "\n11-22 10:15:00.000  1  1 I ssh: ");
        assert_eq!(without_keys(&format!("{logged}\nafter")).0, "<key>\nafter");
        let cut = format!("-----BEGIN EC PRIVATE KEY-----\n{}\nQnnDsp error 1002\n", "Ab1+".repeat(16));
        assert_eq!(without_keys(&cut).0, "<key>\nQnnDsp error 1002\n");
        let two = format!("-----BEGIN X-----\nplain words\n{key}\n");
        assert_eq!(without_keys(&two), ("<key>\nplain words\n<key>\n".into(), 2));
        assert_eq!(without_keys("-----BEGIN "), ("<key>".into(), 1));
        assert_eq!(without_keys("nothing"), ("nothing".into(), 0));
    }

    #[test]
    fn folders_of_somebody_go_and_those_of_systems_stay() {
        for (text, expected) in [
            ("cannot open /mnt/acme/secret/m.dlc: no", "cannot open /mnt/<path>/m.dlc: no"),
            ("--model=/srv/nas/x.bin,", "--model=/srv/<path>/x.bin,"),
            ("/data/local/tmp/acme/libQnnHtp.so", "/data/local/tmp/<path>/libQnnHtp.so"),
            ("/data/app/~~a==/com.acme.app-b==/base.apk", "/data/app/<path>/base.apk"),
            ("/storage/emulated/0/Acme/in.raw", "/storage/emulated/0/<path>/in.raw"),
            ("a:/mnt/b/c/d.so", "a:/mnt/<path>/d.so"),
            ("(/mnt/b/c/)", "(/mnt/<path>/)"),
            ("file:///mnt/b/c/d", "file:///mnt/<path>/d"),
            ("/vendor/lib64/libcdsprpc.so /system/lib64/x", "/vendor/lib64/libcdsprpc.so /system/lib64/x"),
            ("/opt/qcom/aistack/qairt/2.47/lib/x.so", "/opt/qcom/aistack/qairt/2.47/lib/x.so"),
            ("/data/local/tmp/x.so /tmp/y and 3/4 and/or a/b/c", "/data/local/tmp/x.so /tmp/y and 3/4 and/or a/b/c"),
            ("QnnBackend_createEvent // comment / x", "QnnBackend_createEvent // comment / x"),
            ("/dev/fastrpc-cdsp, /proc/self/maps", "/dev/fastrpc-cdsp, /proc/self/maps"),
            ("/mnt/ä/ö/ü.so", "/mnt/<path>/ü.so"),
        ] {
            assert_eq!(without_folders(text).0, expected, "{text}");
        }
    }
}
