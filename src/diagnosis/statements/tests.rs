use super::*;

fn shown(line: &str) -> Vec<String> {
    let lexicon = lexicon();
    let list = Statements::of(line.as_bytes()).list;
    let names = list.iter().map(|statement| {
        let of: Vec<&str> = statement.of.iter().map(|class| lexicon.object_name(class)).collect();
        format!("{}({})", lexicon.said_name(statement.said), of.join(","))
    });
    names.collect()
}

#[track_caller]
fn states(line: &str, wanted: &str) {
    let shown = shown(line);
    assert!(shown.iter().any(|statement| statement == wanted), "{line}: {shown:?}");
}

#[test]
fn one_statement_has_many_wordings() {
    for line in [
        "op Hardmax is not supported",
        "Hardmax operators are not supported",
        "the backend's op set does not support Hardmax".replace("backend's op", "op").as_str(),
        "Cannot resolve Hardmax layer",
        "unsupported operator: Hardmax",
    ] {
        states(line, "refused(op)");
    }
    for line in [
        "input list in.txt: No such file or directory",
        "cannot find the input list",
        "Input_List does not exist",
        "the input-list could not be found",
    ] {
        states(line, "missing(input-list)");
    }
    states("tensors a and b have mismatching datatypes", "mismatched(tensor,dtype)");
    states("tensor a: data type does not match", "mismatched(tensor,dtype)");
}

#[test]
fn sentences_are_apart_and_words_whole() {
    let shown = shown("The model was read. The option is not supported");
    assert_eq!(shown, ["refused(option)"]);
    assert!(Statements::of(b"modelling unsupportedness").list.is_empty());
    // The version of a library does not end a clause.
    states("libfoo.so.1: cannot open shared object file: No such file or directory", "missing(library)");
}

#[test]
fn levels_of_all_tools_are_read() {
    for (line, wanted) in [
        ("   12.3ms [ ERROR ] x", Level::Error),
        ("08-04 13:56:51.508  4711  4712 E QnnDsp: x", Level::Error),
        ("E/QnnDsp( 4711): x", Level::Error),
        ("2026-11-22 03:44:23,931 - 235 - INFO - x", Level::Info),
        ("[W:onnxruntime:, a.cc:1 F] x", Level::Warning),
        ("[INFO] [Qnn ExecuTorch]:  <E> x", Level::Error),
        ("<V> x", Level::Debug),
        (r#"{"ts": 1.5, "level": "fatal", "msg": "x"}"#, Level::Unsaid),
        (r#"{"severity":"WARNING","event":"x"}"#, Level::Warning),
        (r#"{"level":30,"msg":"error"}"#, Level::Unsaid),
        ("2026-11-25T23:36:41 | WARN could not open x", Level::Warning),
        ("2026-11-26 01:38:16.728 | SUCCESS  | __main__:a:23 - x", Level::Info),
        ("Nov 26 01:49:10 edge agent[2899]: <warn> x", Level::Warning),
        ("Nov 26 02:12:14 hub kwsd[27431]: <3> x", Level::Error),
        ("x", Level::Unsaid),
    ] {
        assert_eq!(level(line.as_bytes()), wanted, "{line}");
    }
}

#[test]
fn every_code_space_is_decoded() {
    for (line, space, value) in [
        ("QNN error 1002", "QNN", 1002),
        ("status 0x3ea", "QNN", 1002),
        ("qnn_open failed, 0x80000406", "FastRPC", 0x8000_0406),
        ("qnn_open failed, -2147482618", "FastRPC", 0x8000_0406),
        ("failed: 18446744071562068998", "FastRPC", 0x8000_0406),
        ("process exited with code -1073741819", "Windows NTSTATUS", 0xc000_0005),
        ("exit code 0xC0000135", "Windows NTSTATUS", 0xc000_0135),
        ("LoadLibrary failed with error 126", "Windows", 126),
        ("errno 13", "errno", 13),
        ("ret = -12", "errno", 12),
        ("killed by signal 9", "signal", 9),
        ("exit status 137", "exit status", 137),
        ("[ONNXRuntimeError] : 11 : EP_FAIL", "ONNX Runtime", 11),
    ] {
        let decoded = decode(line.as_bytes());
        assert!(decoded.iter().any(|code| code.space == space && code.value == value), "{line}: {decoded:?}");
    }
    assert!(decode(b"12:31:13 pid 1002 buffer of 1008 bytes, 0 errors").is_empty());
}
