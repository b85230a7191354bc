//! The index: an SQLite database of what lists and filters need. All of its contents come from the files
//! beside it.

use super::{Entry, Filter, HistoryError, State};
use rusqlite::{Connection, params, params_from_iter};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FILE: &str = "index.sqlite";
/// A database of another version is rebuilt.
const VERSION: i64 = 1;
/// How long to wait while another process is writing.
const PATIENCE: Duration = Duration::from_secs(10);

const SCHEMA: &str = "
    CREATE TABLE session (
        id TEXT PRIMARY KEY, started_us INTEGER NOT NULL, bytes INTEGER NOT NULL,
        words TEXT NOT NULL, entry TEXT NOT NULL
    );
    CREATE INDEX session_started ON session (started_us);
    CREATE TABLE run (session TEXT NOT NULL, model TEXT NOT NULL, backend TEXT NOT NULL, device TEXT NOT NULL);
    CREATE INDEX run_session ON run (session);
    CREATE TABLE tag (session TEXT NOT NULL, tag TEXT NOT NULL);
    CREATE INDEX tag_session ON tag (session);
";

/// The open index.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    database: Connection,
}

impl Index {
    /// Opens the index of a folder; one that is missing, damaged or of another version is recreated empty.
    pub fn open(folder: &Path) -> Result<Self, HistoryError> {
        let path = folder.join(FILE);
        match Self::connect(&path) {
            Ok(index) => Ok(index),
            Err(error) if is_damage(&error) => {
                for ending in ["", "-wal", "-shm"] {
                    super::remove(&folder.join(format!("{FILE}{ending}")))?;
                }
                Self::connect(&path).map_err(|source| HistoryError::Index { path, source })
            }
            Err(source) => Err(HistoryError::Index { path, source }),
        }
    }

    fn connect(path: &Path) -> rusqlite::Result<Self> {
        let mut database = Connection::open(path)?;
        database.busy_timeout(PATIENCE)?;
        // Readers and a writer do not wait for each other. Some network file systems do not support this;
        // there they wait.
        let _: String = database.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        let change = database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version: i64 = change.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version != VERSION {
            change
                .execute_batch("DROP TABLE IF EXISTS session; DROP TABLE IF EXISTS run; DROP TABLE IF EXISTS tag;")?;
            change.execute_batch(SCHEMA)?;
            change.pragma_update(None, "user_version", VERSION)?;
        }
        change.commit()?;
        Ok(Self { path: path.to_owned(), database })
    }

    /// Lists a session, replacing its previous entry.
    pub fn put(&mut self, entry: &Entry) -> Result<(), HistoryError> {
        self.change(|database| {
            let change = database.transaction()?;
            forget(&change, &entry.id)?;
            let text =
                serde_json::to_string(entry).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            // Incomplete or broken sessions are examined again each time.
            let is_open = entry.state == State::Recording || entry.marks_error.is_some();
            let bytes = if is_open { -1 } else { signed(entry.bytes) };
            change.execute(
                "INSERT INTO session (id, started_us, bytes, words, entry) VALUES (?, ?, ?, ?, ?)",
                params![entry.id, signed(entry.started_us), bytes, words(entry), text],
            )?;
            for run in &entry.runs {
                let device = format!("{} {}", run.device, run.device_model.as_deref().unwrap_or_default());
                change.execute(
                    "INSERT INTO run (session, model, backend, device) VALUES (?, ?, ?, ?)",
                    params![entry.id, run.model.to_lowercase(), run.backend, device.to_lowercase()],
                )?;
            }
            for tag in &entry.marks.tags {
                change.execute("INSERT INTO tag (session, tag) VALUES (?, ?)", params![entry.id, tag])?;
            }
            change.commit()
        })
    }

    /// Removes a session from the list.
    pub fn remove(&mut self, id: &str) -> Result<(), HistoryError> {
        self.change(|database| {
            let change = database.transaction()?;
            forget(&change, id)?;
            change.commit()
        })
    }

    /// Sizes of the listed sessions' files in bytes, by id; `None` for those that must be read again because
    /// they were not complete yet.
    pub fn files(&self) -> Result<BTreeMap<String, Option<u64>>, HistoryError> {
        self.read(|database| {
            let mut statement = database.prepare("SELECT id, bytes FROM session")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).ok())))?;
            rows.collect()
        })
    }

    /// The sessions that pass a filter, newest first.
    pub fn entries(&self, filter: &Filter) -> Result<Vec<Entry>, HistoryError> {
        let mut wheres = vec!["1".to_owned()];
        let mut values: Vec<rusqlite::types::Value> = Vec::new();
        let mut add = |sql: &str, value: rusqlite::types::Value| {
            wheres.push(sql.to_owned());
            values.push(value);
        };
        let runs = |column: &str| {
            format!("EXISTS (SELECT 1 FROM run WHERE run.session = session.id AND instr(run.{column}, ?) > 0)")
        };
        if let Some(model) = &filter.model {
            add(&runs("model"), model.to_lowercase().into());
        }
        if let Some(device) = &filter.device {
            add(&runs("device"), device.to_lowercase().into());
        }
        if let Some(backend) = &filter.backend {
            add(
                "EXISTS (SELECT 1 FROM run WHERE run.session = session.id AND run.backend = ?)",
                backend.clone().into(),
            );
        }
        if let Some(tag) = &filter.tag {
            add("EXISTS (SELECT 1 FROM tag WHERE tag.session = session.id AND tag.tag = ?)", tag.clone().into());
        }
        if let Some(text) = &filter.text {
            add("instr(words, ?) > 0", text.to_lowercase().into());
        }
        if let Some(since_us) = filter.since_us {
            add("started_us >= ?", signed(since_us).into());
        }
        if let Some(until_us) = filter.until_us {
            add("started_us < ?", signed(until_us).into());
        }
        let limit = filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let sql = format!(
            "SELECT entry FROM session WHERE {} ORDER BY started_us DESC, id DESC LIMIT {limit}",
            wheres.join(" AND ")
        );
        self.read(|database| {
            let mut statement = database.prepare(&sql)?;
            let texts = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(0))?;
            // A row that this version does not understand was written by another version, which can list it.
            let entries = texts.filter_map(|text| text.map(|text| serde_json::from_str(&text).ok()).transpose());
            entries.collect()
        })
    }

    fn change(&mut self, change: impl FnOnce(&mut Connection) -> rusqlite::Result<()>) -> Result<(), HistoryError> {
        change(&mut self.database).map_err(|source| HistoryError::Index { path: self.path.clone(), source })
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, HistoryError> {
        read(&self.database).map_err(|source| HistoryError::Index { path: self.path.clone(), source })
    }
}

fn forget(database: &Connection, id: &str) -> rusqlite::Result<()> {
    for (table, column) in [("session", "id"), ("run", "session"), ("tag", "session")] {
        database.execute(&format!("DELETE FROM {table} WHERE {column} = ?"), [id])?;
    }
    Ok(())
}

/// All text that a search covers, in lower case.
fn words(entry: &Entry) -> String {
    let marks = [entry.marks.name.as_deref(), entry.marks.note.as_deref()];
    let runs = entry.runs.iter().flat_map(|run| [Some(run.model.as_str()), run.error.as_deref()]);
    let tags = entry.marks.tags.iter().map(|tag| Some(tag.as_str()));
    let all: Vec<&str> =
        std::iter::once(Some(entry.id.as_str())).chain(marks).chain(runs).chain(tags).flatten().collect();
    all.join("\n").to_lowercase()
}

/// True if the file is no longer a valid database.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// SQLite's integers are signed; no figure here comes near 2^63.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
