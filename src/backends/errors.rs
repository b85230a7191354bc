//! QNN error numbers: symbol and meaning, by number and by the call that returned it.

/// One row of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// Low 16 bits of the returned value.
    pub code: u64,
    /// Component, such as `graph`.
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

/// The row for a returned value. One number can have several symbols (the system components all start at 30000): the
/// component that the call belongs to wins, then the first row.
pub fn lookup(value: u64, call: &str) -> Option<ErrorCode> {
    let code = value & 0xffff;
    let mut rows = all().filter(|row| row.code == code);
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

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().collect::<String>() + chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_is_whole() {
        let rows = CATALOGUE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(all().count(), rows, "a row of error-codes.tsv does not parse");
        assert!(rows > 150);
        assert!(all().all(|row| row.symbol.starts_with("QNN_") && !row.meaning.is_empty()));
    }

    #[test]
    fn symbols_by_number_and_call() {
        assert_eq!(lookup(1002, "graphFinalize").map(|e| e.symbol), Some("QNN_GRAPH_ERROR_MEM_ALLOC"));
        assert_eq!(lookup(1002, "backendCreate").map(|e| e.symbol), Some("QNN_BACKEND_ERROR_MEM_ALLOC"));
        assert_eq!(lookup(3110, "backendValidateOpConfig").map(|e| e.code), Some(3110));
        assert_eq!(lookup(0x1_0000 + 14001, "deviceCreate").map(|e| e.component), Some("device"));
        assert_eq!(lookup(29999, "graphExecute"), None);
    }
}
