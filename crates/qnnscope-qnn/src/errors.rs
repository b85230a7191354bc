//! Error numbers of QNN and of FastRPC below it: symbol and meaning, by number, symbol, and returning call.

use qnnscope_core::event::capitalised;

/// One row of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// QNN: low 16 bits of the returned value. FastRPC: 0x80000400 and the number, or the bare number of the host's side.
    pub code: u64,
    /// Component, such as `graph`, `fastrpc` or `fastrpc host`.
    pub component: &'static str,
    /// Symbol, such as `QNN_GRAPH_ERROR_INVALID_HANDLE`.
    pub symbol: &'static str,
    /// Meaning, in our own words.
    pub meaning: &'static str,
}

const CATALOGUE: &str = include_str!("error-codes.tsv");

/// Every row of the catalogue.
pub fn all() -> impl Iterator<Item = ErrorCode> {
    CATALOGUE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut cells = line.splitn(4, '\t');
        Some(ErrorCode {
            code: cells.next()?.parse().ok()?,
            component: cells.next()?,
            symbol: cells.next()?,
            meaning: cells.next()?,
        })
    })
}

/// Offset that FastRPC adds to numbers of the DSP's side.
pub const FASTRPC_BASE: u64 = 0x8000_0400;

/// Ranges of QNN codes, `component, first, last`.
const RANGES: [(&str, u64, u64); 18] = [
    ("common", 1000, 1999),
    ("property", 2000, 2999),
    ("op package", 3000, 3999),
    ("saver", 4950, 4998),
    ("backend", 4000, 4999),
    ("context", 5000, 5999),
    ("graph", 6000, 6999),
    ("tensor", 7000, 7999),
    ("mem", 8000, 8999),
    ("signal", 9000, 9999),
    ("error", 10000, 10999),
    ("log", 11000, 11999),
    ("profile", 12000, 12999),
    ("perf infrastructure", 13000, 13999),
    ("device", 14000, 14999),
    ("global config", 15000, 15999),
    ("system", 30000, 49999),
    ("interface", 60000, 60999),
];

/// The component whose range contains a number, for numbers without a row.
pub fn component_of(code: u64) -> Option<&'static str> {
    let fastrpc = (FASTRPC_BASE..FASTRPC_BASE + 0x400).contains(&code).then_some("fastrpc");
    let qnn = RANGES.iter().find(|range| (range.1..=range.2).contains(&code)).map(|range| range.0);
    fastrpc.or(qnn)
}

/// True for FastRPC codes.
pub fn is_fastrpc(row: &ErrorCode) -> bool {
    row.component.starts_with("fastrpc")
}

/// Every row with exactly this number.
pub fn rows(code: u64) -> impl Iterator<Item = ErrorCode> {
    all().filter(move |row| row.code == code)
}

/// The row for a value returned by a QNN call. One number can have several symbols (the system components all start at
/// 30000): the call's own component takes precedence, then the first row.
pub fn lookup(value: u64, call: &str) -> Option<ErrorCode> {
    let code = value & 0xffff;
    let mut rows = rows(code).filter(|row| !is_fastrpc(row));
    let first = rows.next()?;
    let belongs = |row: &ErrorCode| {
        let component: String = row.component.split_whitespace().map(capitalised).collect();
        let call: String = capitalised(call);
        call.starts_with(&component)
    };
    if belongs(&first) {
        return Some(first);
    }
    Some(rows.find(belongs).unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_is_whole() {
        let rows = CATALOGUE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(all().count(), rows, "a row of error-codes.tsv does not parse");
        assert!(rows > 220);
        for row in all() {
            assert!(row.symbol.starts_with(if is_fastrpc(&row) { "AEE_" } else { "QNN_" }), "{row:?}");
            assert!(!row.meaning.is_empty() && !row.meaning.contains('\t'), "{row:?}");
        }
    }

    #[test]
    fn numbers_without_a_row_have_a_component() {
        assert_eq!(component_of(6999), Some("graph"));
        assert_eq!(component_of(4951), Some("saver"));
        assert_eq!(component_of(0x8000_07ff), Some("fastrpc"));
        assert_eq!(component_of(20000), None);
        for row in all().filter(|row| !is_fastrpc(row) && row.code >= 1000) {
            assert!(component_of(row.code).is_some(), "{row:?}");
        }
    }

    #[test]
    fn symbols_by_number_and_call() {
        assert_eq!(lookup(1002, "graphFinalize").map(|e| e.symbol), Some("QNN_GRAPH_ERROR_MEM_ALLOC"));
        assert_eq!(lookup(1002, "backendCreate").map(|e| e.symbol), Some("QNN_BACKEND_ERROR_MEM_ALLOC"));
        assert_eq!(lookup(3110, "backendValidateOpConfig").map(|e| e.code), Some(3110));
        assert_eq!(lookup(0x1_0000 + 14001, "deviceCreate").map(|e| e.component), Some("device"));
        assert_eq!(lookup(29999, "graphExecute"), None);
        assert_eq!(lookup(104, "graphExecute"), None, "FastRPC's numbers are no answers of QNN calls");
    }
}
