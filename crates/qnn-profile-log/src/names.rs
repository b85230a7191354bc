//! Op names as decorated by the backends.

/// An op's identifier, parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpIdentifier<'a> {
    /// The node's name; `Input` and `Output` for the two that HTP adds.
    pub name: &'a str,
    /// HTP's number of the op.
    pub op_id: Option<u64>,
}

/// Parses HTP's `NODE:OpId_12 (cycles)` and `Input OpId_2 (cycles)` and CPU's `_NODE`. Names may contain colons,
/// slashes and `@`, so the last marker counts. CPU prefixes every name with one underscore: `cpu` says whether a name
/// is CPU's, since the identifier does not.
pub fn op_identifier(identifier: &str, cpu: bool) -> OpIdentifier<'_> {
    let text = identifier.strip_suffix("(cycles)").unwrap_or(identifier).trim_end();
    if let Some(at) = text.rfind("OpId_")
        && let Some(name) = text[..at].strip_suffix([':', ' '])
        && let digits = &text[at + "OpId_".len()..]
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(op_id) = digits.parse()
    {
        return OpIdentifier { name, op_id: Some(op_id) };
    }
    let name = if cpu { identifier.strip_prefix('_').unwrap_or(identifier) } else { identifier };
    OpIdentifier { name, op_id: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_backends() {
        for (identifier, cpu, name, op_id) in [
            ("conv:OpId_21 (cycles)", false, "conv", Some(21)),
            ("a:b/c@0:OpId_22 (cycles)", false, "a:b/c@0", Some(22)),
            ("conv:OpId_24 ", false, "conv", Some(24)),
            ("Input OpId_2 (cycles)", false, "Input", Some(2)),
            ("x:OpId_1:OpId_2 (cycles)", false, "x:OpId_1", Some(2)),
            ("x:OpId_ (cycles)", false, "x:OpId_ (cycles)", None),
            ("x:OpId_99999999999999999999", false, "x:OpId_99999999999999999999", None),
            ("_conv", true, "conv", None),
            ("__odd", true, "_odd", None),
            ("_conv", false, "_conv", None),
            ("plain", true, "plain", None),
            ("", true, "", None),
            ("OpId_5", false, "OpId_5", None),
            ("é:OpId_5", false, "é", Some(5)),
        ] {
            assert_eq!(op_identifier(identifier, cpu), OpIdentifier { name, op_id }, "{identifier}");
        }
    }
}
