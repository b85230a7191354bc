//! A table of the dataset: its columns, and a Parquet file that rows are added to.

use super::DatasetError;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Number of cells collected before writing: some tens of megabytes for any table.
const GROUP_CELLS: usize = 2_000_000;

/// The tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Inferences of all phases.
    Inferences,
    /// Op times of each detailed inference.
    Ops,
    /// Counter readings.
    Counters,
    /// Runs; written last.
    Runs,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8 text.
    Text,
    /// Signed 64-bit integer.
    Int,
    /// Microseconds since 1970-01-01 UTC.
    Moment,
    /// 64-bit float.
    Real,
    /// Boolean.
    Flag,
}

use Kind::{Flag, Int, Moment, Real, Text};

impl Table {
    /// All tables, in the order in which their files are moved into place.
    pub const ALL: [Self; 4] = [Self::Inferences, Self::Ops, Self::Counters, Self::Runs];

    /// Its folder name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inferences => "inferences",
            Self::Ops => "ops",
            Self::Counters => "counters",
            Self::Runs => "runs",
        }
    }

    /// Its columns in order. All are nullable, since unknown values are not made up.
    pub fn columns(self) -> &'static [(&'static str, Kind)] {
        match self {
            Self::Inferences => &[
                ("session", Text),
                ("run", Int),
                ("launch", Int),
                ("phase", Text),
                ("inference", Int),
                ("start_us", Int),
                ("latency_us", Real),
                ("late_us", Real),
            ],
            Self::Ops => &[
                ("session", Text),
                ("run", Int),
                ("launch", Int),
                ("inference", Int),
                ("op", Int),
                ("name", Text),
                ("type", Text),
                ("unit", Text),
                ("value", Int),
            ],
            Self::Counters => &[
                ("session", Text),
                ("device", Text),
                ("counter", Text),
                ("unit", Text),
                ("t_us", Int),
                ("value", Real),
            ],
            Self::Runs => &[
                ("session", Text),
                ("run", Int),
                ("started_at", Moment),
                ("tool_version", Text),
                ("host", Text),
                ("model", Text),
                ("model_sha256", Text),
                ("graph", Text),
                ("op_count", Int),
                ("macs", Int),
                ("parameter_bytes", Int),
                ("backend", Text),
                ("build_id", Text),
                ("device", Text),
                ("device_model", Text),
                ("soc", Text),
                ("hexagon_arch", Text),
                ("simulated", Flag),
                ("driver", Text),
                ("rate_hz", Real),
                ("launches", Int),
                ("status", Text),
                ("failed_stage", Text),
                ("error_code", Int),
                ("error", Text),
                ("inferences", Int),
                ("first_us", Real),
                ("mean_us", Real),
                ("p50_us", Real),
                ("p90_us", Real),
                ("p95_us", Real),
                ("p99_us", Real),
                ("max_us", Real),
                ("throughput_ips", Real),
                ("rss_peak_bytes", Int),
                ("cpu_percent", Real),
            ],
        }
    }
}

/// A value in a row.
#[derive(Debug, Clone)]
pub enum Cell {
    /// Unknown.
    Null,
    /// Text; copies share it.
    Text(ByteArray),
    /// An integer, or a point in time.
    Int(i64),
    /// A float.
    Real(f64),
    /// A boolean.
    Flag(bool),
}

impl Cell {
    /// A text.
    pub fn text(text: &str) -> Self {
        Self::Text(ByteArray::from(text))
    }

    /// A count; null beyond 2^63.
    pub fn count(count: u64) -> Self {
        i64::try_from(count).map_or(Self::Null, Self::Int)
    }

    /// A float; null if there is none.
    pub fn real(value: Option<f64>) -> Self {
        value.filter(|value| value.is_finite()).map_or(Self::Null, Self::Real)
    }

    /// A text; null if there is none.
    pub fn some(text: Option<&str>) -> Self {
        text.map_or(Self::Null, Self::text)
    }
}

/// The cells of a column that are not written yet.
#[derive(Debug)]
enum Values {
    Text(Vec<ByteArray>),
    Int(Vec<i64>),
    Real(Vec<f64>),
    Flag(Vec<bool>),
}

#[derive(Debug)]
struct Column {
    values: Values,
    /// 1 for a value, 0 for null, as in Parquet.
    levels: Vec<i16>,
}

impl Column {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Text => Values::Text(Vec::new()),
            Int | Moment => Values::Int(Vec::new()),
            Real => Values::Real(Vec::new()),
            Flag => Values::Flag(Vec::new()),
        };
        Self { values, levels: Vec::new() }
    }

    fn push(&mut self, cell: Cell) {
        let is_there = match (&mut self.values, cell) {
            (Values::Text(values), Cell::Text(value)) => {
                values.push(value);
                true
            }
            (Values::Int(values), Cell::Int(value)) => {
                values.push(value);
                true
            }
            (Values::Real(values), Cell::Real(value)) => {
                values.push(value);
                true
            }
            (Values::Flag(values), Cell::Flag(value)) => {
                values.push(value);
                true
            }
            (_, cell) => {
                debug_assert!(matches!(cell, Cell::Null), "a cell of another kind than its column");
                false
            }
        };
        self.levels.push(i16::from(is_there));
    }

    fn clear(&mut self) {
        match &mut self.values {
            Values::Text(values) => values.clear(),
            Values::Int(values) => values.clear(),
            Values::Real(values) => values.clear(),
            Values::Flag(values) => values.clear(),
        }
        self.levels.clear();
    }
}

/// A Parquet file that rows are added to.
pub struct TableWriter {
    /// The table it belongs to.
    pub table: Table,
    writer: SerializedFileWriter<File>,
    columns: Vec<Column>,
    waiting: usize,
    rows: u64,
}

impl TableWriter {
    /// Creates the file at a path.
    pub fn new(table: Table, path: &Path) -> Result<Self, DatasetError> {
        let file = File::create(path).map_err(|source| DatasetError::Io { path: path.to_owned(), source })?;
        let writer = open(table, file).map_err(|source| DatasetError::Table { table: table.name(), source })?;
        let columns = table.columns().iter().map(|(_, kind)| Column::new(*kind)).collect();
        Ok(Self { table, writer, columns, waiting: 0, rows: 0 })
    }

    /// Adds a row with one cell per column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) -> Result<(), DatasetError> {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            column.push(cells.next().unwrap_or(Cell::Null));
        }
        debug_assert!(cells.next().is_none(), "as many cells as columns");
        self.rows += 1;
        self.waiting += self.columns.len();
        if self.waiting >= GROUP_CELLS { self.flush() } else { Ok(()) }
    }

    /// Adds metadata to the file.
    pub fn note(&mut self, key: &str, value: String) {
        self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }

    /// Finishes the file and returns its number of rows.
    pub fn finish(mut self) -> Result<u64, DatasetError> {
        self.flush()?;
        let table = self.table.name();
        self.writer.close().map_err(|source| DatasetError::Table { table, source })?;
        Ok(self.rows)
    }

    fn flush(&mut self) -> Result<(), DatasetError> {
        if std::mem::take(&mut self.waiting) == 0 {
            return Ok(());
        }
        let table = self.table.name();
        write(&mut self.writer, &self.columns).map_err(|source| DatasetError::Table { table, source })?;
        self.columns.iter_mut().for_each(Column::clear);
        Ok(())
    }
}

fn open(table: Table, file: File) -> Result<SerializedFileWriter<File>, ParquetError> {
    let column = |(name, kind): &(&str, Kind)| match kind {
        Text => format!("OPTIONAL BYTE_ARRAY {name} (UTF8);"),
        Int => format!("OPTIONAL INT64 {name};"),
        Moment => format!("OPTIONAL INT64 {name} (TIMESTAMP(MICROS,true));"),
        Real => format!("OPTIONAL DOUBLE {name};"),
        Flag => format!("OPTIONAL BOOLEAN {name};"),
    };
    let columns: String = table.columns().iter().map(column).collect();
    let schema = parse_message_type(&format!("message {} {{ {columns} }}", table.name()))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(concat!("qnnscope ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
}

fn write(writer: &mut SerializedFileWriter<File>, columns: &[Column]) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        let Some(mut out) = group.next_column()? else { break };
        let levels = Some(column.levels.as_slice());
        match &column.values {
            Values::Text(values) => out.typed::<ByteArrayType>().write_batch(values, levels, None)?,
            Values::Int(values) => out.typed::<Int64Type>().write_batch(values, levels, None)?,
            Values::Real(values) => out.typed::<DoubleType>().write_batch(values, levels, None)?,
            Values::Flag(values) => out.typed::<BoolType>().write_batch(values, levels, None)?,
        };
        out.close()?;
    }
    group.close().map(drop)
}
