//! The file picker's state. Directories are read elsewhere (reading may block); the result comes back as a
//! [`Listing`].

use std::path::{Path, PathBuf};

/// Maximum entries kept per directory.
const MAX_ENTRIES: usize = 20_000;

/// The kind of an entry. The order is that of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// The parent directory.
    Parent,
    /// A directory.
    Directory,
    /// A file with a model's name.
    Model,
    /// Any other file; models are recognised by content, so it can be chosen too.
    File,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub path: PathBuf,
    /// Its name, free of control characters.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Size of a file.
    pub bytes: Option<u64>,
}

/// A directory as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Which directory.
    pub dir: PathBuf,
    /// Its entries, or why there are none.
    pub entries: Result<Vec<Entry>, String>,
}

impl Listing {
    /// Reads a directory. It may block.
    pub fn read(dir: &Path) -> Self {
        let entries = read(dir).map_err(|error| error.to_string());
        Self { dir: dir.to_owned(), entries }
    }
}

fn read(dir: &Path) -> std::io::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = std::fs::read_dir(dir)?
        .flatten()
        .take(MAX_ENTRIES)
        .map(|entry| {
            let path = entry.path();
            // Links are followed: a link to a directory is entered, a link to a model counts as a model.
            let metadata = std::fs::metadata(&path).ok();
            let name = crate::event::clean_text(&entry.file_name().to_string_lossy());
            let directory = metadata.as_ref().is_some_and(std::fs::Metadata::is_dir);
            let kind = if directory { EntryKind::Directory } else { kind_by_name(&name) };
            Entry { path, name, kind, bytes: metadata.filter(std::fs::Metadata::is_file).map(|m| m.len()) }
        })
        .collect();
    entries.sort_by_cached_key(|entry| (entry.kind, entry.name.to_lowercase()));
    if let Some(parent) = dir.parent() {
        let name = "..".to_owned();
        entries.insert(0, Entry { path: parent.to_owned(), name, kind: EntryKind::Parent, bytes: None });
    }
    Ok(entries)
}

fn kind_by_name(name: &str) -> EntryKind {
    let model = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && ["dlc", "so", "bin", "onnx"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    });
    if model { EntryKind::Model } else { EntryKind::File }
}

/// The result of choosing an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Another directory is read.
    Directory,
    /// A file was chosen.
    File(PathBuf),
    /// There is nothing to choose.
    Nothing,
}

/// The picker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picker {
    /// The directory shown.
    pub dir: PathBuf,
    /// The input: a filter, or a path if it contains a slash.
    pub text: String,
    /// Show hidden files.
    pub hidden: bool,
    /// Selected row of [`Picker::visible`].
    pub selected: usize,
    /// The directory's entries; `None` while it is being read.
    pub listing: Option<Result<Vec<Entry>, String>>,
    wanted: Option<PathBuf>,
}

impl Picker {
    /// A picker that starts in `dir`.
    pub fn new(dir: PathBuf) -> Self {
        let wanted = Some(dir.clone());
        Self { dir, text: String::new(), hidden: false, selected: 0, listing: None, wanted }
    }

    /// The directory to read now; returned once.
    pub fn take_wanted(&mut self) -> Option<PathBuf> {
        self.wanted.take()
    }

    /// A directory was read; ignored unless it is the shown one.
    pub fn listed(&mut self, listing: Listing) {
        if listing.dir == self.dir {
            self.listing = Some(listing.entries);
            self.select_first();
        }
    }

    /// The part of the input that filters names.
    pub fn filter(&self) -> &str {
        self.text.rsplit('/').next().unwrap_or_default()
    }

    /// The entries left by the filter and the hidden switch.
    pub fn visible(&self) -> Vec<&Entry> {
        let Some(Ok(entries)) = &self.listing else { return Vec::new() };
        let filter = self.filter().to_lowercase();
        let hidden = self.hidden || filter.starts_with('.');
        entries
            .iter()
            .filter(|entry| {
                let parent = entry.kind == EntryKind::Parent;
                let shown = parent || hidden || !entry.name.starts_with('.');
                shown && (filter.is_empty() || (!parent && entry.name.to_lowercase().contains(&filter)))
            })
            .collect()
    }

    /// Adds typed or pasted text.
    pub fn insert(&mut self, text: &str) {
        let pasted = text.trim_matches(['\n', '\r', ' ', '\'', '"']);
        let text = if text.chars().count() > 1 { pasted.strip_prefix("file://").unwrap_or(pasted) } else { text };
        // A pasted absolute path replaces what was typed.
        if text.len() > 1 && (text.starts_with('/') || text.starts_with("~/")) {
            self.text.clear();
        }
        self.text.extend(text.chars().filter(|c| !c.is_control()));
        self.follow_text();
    }

    /// Removes the last character; with empty input goes to the parent directory.
    pub fn delete_back(&mut self) {
        if self.text.pop().is_none() {
            self.parent();
        } else {
            self.follow_text();
        }
    }

    /// Empties the text.
    pub fn delete_all(&mut self) {
        self.text.clear();
        self.select_first();
    }

    /// Goes to the parent directory.
    pub fn parent(&mut self) {
        if let Some(parent) = self.dir.parent().map(Path::to_owned) {
            self.text.clear();
            self.go(parent);
        }
    }

    /// Shows or hides hidden files.
    pub fn toggle_hidden(&mut self) {
        self.hidden = !self.hidden;
        self.select_first();
    }

    /// Moves the selection.
    pub fn step(&mut self, step: isize) {
        let last = self.visible().len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(step).min(last);
    }

    /// Opens the selected entry; a typed path that matches no entry is used as it is.
    pub fn open(&mut self) -> Choice {
        let entry = self.visible().get(self.selected).map(|entry| (entry.kind, entry.path.clone()));
        match entry {
            Some((EntryKind::Parent | EntryKind::Directory, path)) => {
                self.text.clear();
                self.go(path);
                Choice::Directory
            }
            Some((_, path)) => Choice::File(path),
            None if self.filter().is_empty() => Choice::Nothing,
            None => Choice::File(self.dir.join(self.filter())),
        }
    }

    fn follow_text(&mut self) {
        if let Some((folder, _)) = self.text.rsplit_once('/') {
            let folder = match folder.strip_prefix('~') {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                    etcetera::home_dir().map(|home| home.join(rest.trim_start_matches('/'))).unwrap_or_default()
                }
                _ if folder.is_empty() => PathBuf::from("/"),
                _ if folder.starts_with('/') => PathBuf::from(folder),
                // A relative path starts at the shown directory: it is resolved once, then cleared.
                _ => {
                    let folder = self.dir.join(folder);
                    self.text = self.filter().to_owned();
                    folder
                }
            };
            if folder != self.dir {
                self.go(folder);
            }
        }
        self.select_first();
    }

    fn go(&mut self, dir: PathBuf) {
        self.wanted = Some(dir.clone());
        self.dir = dir;
        self.listing = None;
        self.selected = 0;
    }

    /// The first plausible entry: not the parent, if there is another one.
    fn select_first(&mut self) {
        let visible = self.visible();
        let up = visible.first().is_some_and(|entry| entry.kind == EntryKind::Parent);
        self.selected = usize::from(up && visible.len() > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: EntryKind) -> Entry {
        Entry { path: Path::new("/m").join(name), name: name.to_owned(), kind, bytes: Some(1) }
    }

    fn picker() -> Picker {
        let mut picker = Picker::new(PathBuf::from("/m"));
        let entries = vec![
            Entry { path: PathBuf::from("/"), name: "..".to_owned(), kind: EntryKind::Parent, bytes: None },
            entry(".cache", EntryKind::Directory),
            entry("sub", EntryKind::Directory),
            entry("a.dlc", EntryKind::Model),
            entry("notes.txt", EntryKind::File),
        ];
        picker.listed(Listing { dir: PathBuf::from("/m"), entries: Ok(entries) });
        picker
    }

    fn names(picker: &Picker) -> Vec<&str> {
        picker.visible().iter().map(|entry| entry.name.as_str()).collect()
    }

    #[test]
    fn filters_and_hides() {
        let mut picker = picker();
        assert_eq!(names(&picker), ["..", "sub", "a.dlc", "notes.txt"]);
        assert_eq!(picker.selected, 1);
        picker.toggle_hidden();
        assert_eq!(names(&picker), ["..", ".cache", "sub", "a.dlc", "notes.txt"]);
        picker.insert("D");
        assert_eq!(names(&picker), ["a.dlc"]);
        assert_eq!(picker.open(), Choice::File(PathBuf::from("/m/a.dlc")));
        picker.insert("zzz");
        assert_eq!(picker.open(), Choice::File(PathBuf::from("/m/Dzzz")));
    }

    #[test]
    fn directories_are_asked_for_once() {
        let mut picker = picker();
        assert_eq!(picker.take_wanted(), Some(PathBuf::from("/m")));
        assert_eq!(picker.open(), Choice::Directory);
        assert_eq!(picker.take_wanted(), Some(PathBuf::from("/m/sub")));
        assert_eq!(picker.take_wanted(), None);
        picker.listed(Listing { dir: PathBuf::from("/elsewhere"), entries: Ok(Vec::new()) });
        assert_eq!(picker.listing, None, "a late listing of another directory is left aside");
        picker.listed(Listing { dir: PathBuf::from("/m/sub"), entries: Err("permission denied".to_owned()) });
        assert_eq!(picker.listing, Some(Err("permission denied".to_owned())));
        assert_eq!(picker.open(), Choice::Nothing);
    }

    #[test]
    fn paths_can_be_typed_and_pasted() {
        let mut picker = picker();
        picker.take_wanted();
        picker.insert("'/opt/models/net.dlc'\n");
        assert_eq!((picker.dir.as_path(), picker.filter()), (Path::new("/opt/models"), "net.dlc"));
        assert_eq!(picker.take_wanted(), Some(PathBuf::from("/opt/models")));
        assert_eq!(picker.open(), Choice::File(PathBuf::from("/opt/models/net.dlc")));
        picker.delete_all();
        for c in "sub/x".chars() {
            picker.insert(&c.to_string());
        }
        assert_eq!((picker.dir.as_path(), picker.text.as_str()), (Path::new("/opt/models/sub"), "x"));
    }

    #[test]
    fn an_unreadable_directory_says_why() {
        let listing = Listing::read(Path::new("/nonexistent-qnnscope"));
        assert!(listing.entries.is_err_and(|reason| reason.contains("No such file")));
    }

    #[test]
    fn models_are_listed_before_other_files() {
        assert_eq!(kind_by_name("a.DLC"), EntryKind::Model);
        assert_eq!(kind_by_name("libm.so"), EntryKind::Model);
        assert_eq!(kind_by_name(".so"), EntryKind::File);
        assert_eq!(kind_by_name("readme"), EntryKind::File);
    }
}
