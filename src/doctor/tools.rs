//! The SDK's tools on this machine: location, version, and whether they start.

use super::item::Item;
use super::start::{Started, advice_for, is_executable, on_path, start};
use crate::backends::runtime::{Platform, version_key};
use crate::facts::{LinkSearch, build_id_in, build_id_of, missing_libraries, read_elf};
use crate::files::open_regular;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The tools, each with its names and the option that shows whether it starts.
const TOOLS: [(&str, &[&str], &str); 5] = [
    ("qnn-net-run", &["qnn-net-run"], "--version"),
    ("converter", &["qairt-converter", "qnn-onnx-converter"], "--help"),
    ("qnn-model-lib-generator", &["qnn-model-lib-generator"], "--help"),
    ("qnn-context-binary-generator", &["qnn-context-binary-generator"], "--version"),
    ("qnn-profile-viewer", &["qnn-profile-viewer"], "--help"),
];

/// Time limit for starting a compiled tool, and one that loads Python with its modules.
const LIMIT: Duration = Duration::from_secs(4);
const PYTHON_LIMIT: Duration = Duration::from_secs(10);

/// Examines all tools in parallel.
pub async fn examine(sdk: Option<&Path>) -> Vec<Item> {
    let folder = sdk.and_then(host_folder);
    let libraries = folder.as_ref().and_then(|folder| Some(sdk?.join("lib").join(folder.file_name()?)));
    let started: Vec<_> = TOOLS
        .iter()
        .map(|(id, names, argument)| {
            let (folder, libraries, sdk) = (folder.clone(), libraries.clone(), sdk.is_some());
            tokio::spawn(async move {
                let found = find(names, folder.as_deref());
                match found {
                    Some(path) => tool(id, &path, argument, libraries.as_deref()).await,
                    None => absent(id, names, sdk),
                }
            })
        })
        .collect();
    let mut items = Vec::new();
    for item in started {
        items.extend(item.await);
    }
    items
}

/// The folder of the SDK's tools for this machine.
fn host_folder(sdk: &Path) -> Option<PathBuf> {
    let wanted = Platform::here().sdk_targets();
    let mut names: Vec<String> = super::sdk::names(&sdk.join("bin"));
    names.retain(|name| wanted.iter().any(|target| name.starts_with(target)));
    names.sort_by_key(|name| {
        (wanted.iter().position(|target| name.starts_with(target)), std::cmp::Reverse(version_key(name)))
    });
    names.first().map(|name| sdk.join("bin").join(name))
}

fn find(names: &[&str], folder: Option<&Path>) -> Option<PathBuf> {
    let in_sdk = names.iter().filter_map(|name| Some(folder?.join(name))).find(|path| path.exists());
    in_sdk.or_else(|| names.iter().find_map(|name| on_path(name)))
}

fn absent(id: &str, names: &[&str], sdk: bool) -> Item {
    let names_text = names.join(" or ");
    if !sdk {
        // A missing SDK is one warning, with advice, which its tools do not repeat.
        return Item::ok(id, names[0], format!("part of the SDK, which is missing; no {names_text} on PATH either"));
    }
    let detail = format!("no {names_text} for this machine, neither in the SDK nor on PATH");
    Item::warning(id, names[0], detail, "use an SDK with tools for this machine, or add their folder to PATH")
}

async fn tool(id: &str, path: &Path, argument: &str, libraries: Option<&Path>) -> Item {
    let what = path.file_name().map_or_else(|| id.to_owned(), |name| name.to_string_lossy().into_owned());
    let shown = path.display();
    if !is_executable(path) {
        return Item::problem(id, &what, format!("{shown} is not executable"), format!("chmod +x {shown}"));
    }
    let elf = read_elf(path).ok().flatten();
    if let Some(elf) = &elf
        && !Platform::here().fits_machine(elf.machine)
    {
        let detail = format!("{shown} is {}; this machine is {}", elf.label(), std::env::consts::ARCH);
        return Item::problem(id, &what, detail, "use the SDK's tools for this machine");
    }
    // As the SDK's own envsetup.sh does: its libraries take precedence over the user's folders.
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = libraries.map(Path::to_owned).into_iter().chain(std::env::split_paths(&own));
    let searched = std::env::join_paths(folders.filter(|path| !path.as_os_str().is_empty())).unwrap_or(own);
    let missing: Vec<String> = {
        let (path, searched) = (path.to_owned(), searched.clone());
        let names = move || {
            let folders: Vec<PathBuf> = std::env::split_paths(&searched).collect();
            missing_libraries(&path, &LinkSearch::new(&folders)).into_iter().map(|(name, _)| name).collect()
        };
        tokio::task::spawn_blocking(names).await.unwrap_or_default()
    };
    if !missing.is_empty() {
        return Item::problem(id, &what, format!("{shown} lacks {}", missing.join(", ")), advice_for(&missing));
    }
    let limit = if elf.is_none() && is_python(path) { PYTHON_LIMIT } else { LIMIT };
    let started = start(path, &[argument], &[("LD_LIBRARY_PATH", &searched)], limit).await;
    judge(id, &what, path, started, limit)
}

/// Whether the first line of a script names Python.
fn is_python(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = open_regular(path).and_then(|file| file.take(128).read_to_end(&mut head));
    read.is_ok()
        && head.starts_with(b"#!")
        && head.split(|byte| *byte == b'\n').next().is_some_and(|line| String::from_utf8_lossy(line).contains("python"))
}

fn judge(id: &str, what: &str, path: &Path, started: Started, limit: Duration) -> Item {
    let shown = path.display();
    let (status, output) = match started {
        Started::Hangs => {
            let detail = format!("{shown} did not finish within {} s and was killed", limit.as_secs());
            return Item::problem(id, what, detail, format!("run `{shown} --help` by hand and see what it waits for"));
        }
        Started::Refused(reason) => {
            return Item::problem(
                id,
                what,
                format!("{shown} does not start: {reason}"),
                "use the SDK's tools for this machine",
            );
        }
        Started::Ended { status, output } => (status, output),
    };
    if let Some((missing, fix)) = lacks(&output) {
        return Item::problem(id, what, format!("{shown} lacks {missing}"), fix);
    }
    let version = build_id_in(output.as_bytes()).or_else(|| build_id_of(path).ok().flatten());
    let version = version.map_or_else(|| "version unknown".to_owned(), |version| version.to_string());
    match status {
        None => Item::problem(id, what, format!("{shown} was killed by a signal"), "use another version of the SDK"),
        Some(status @ (126 | 127)) => {
            let line = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
            let detail = format!("{shown} does not start (status {status}): {}", line.trim());
            Item::problem(id, what, detail, "see what it needs: its first line (`head -n 1`) names the interpreter")
        }
        Some(_) => Item::ok(id, what, format!("{shown}, {version}, starts")),
    }
}

/// What a program that did not start reports as missing, and what to do about it.
fn lacks(output: &str) -> Option<(String, String)> {
    for line in output.lines() {
        if let Some((_, rest)) = line.split_once("error while loading shared libraries: ") {
            let name = rest.split(':').next().unwrap_or(rest).trim().to_owned();
            let fix = advice_for(std::slice::from_ref(&name));
            return Some((name, fix));
        }
        if let Some((_, rest)) = line.split_once("No module named ") {
            let module = rest.trim().trim_matches(['\'', '"']).to_owned();
            let fix = if module.starts_with("qti") || module.contains("libPyIr") || module.contains("snpe") {
                "source the SDK's bin/envsetup.sh: it sets PYTHONPATH".to_owned()
            } else {
                let package = module.split('.').next().unwrap_or(&module);
                format!("python3 -m pip install {package}, in the environment of the SDK's tools")
            };
            return Some((format!("the Python module {module}"), fix));
        }
        if let Some((_, rest)) = line.split_once("ImportError: ") {
            let fix = "use the Python version that the SDK is built for, and source its bin/envsetup.sh";
            return Some((format!("something that Python could not import: {}", rest.trim()), fix.to_owned()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn what_is_lacking_is_named() {
        let said = |output: &str| lacks(output).map(|(what, _)| what);
        assert_eq!(
            said("t: error while loading shared libraries: libc++.so.1: cannot open shared object file\n").as_deref(),
            Some("libc++.so.1")
        );
        let python = "Traceback\nModuleNotFoundError: No module named 'qti'\n";
        assert!(lacks(python).unwrap().1.contains("envsetup.sh"));
        assert_eq!(said("usage: x [-h]\n"), None);
    }

    #[test]
    fn an_unknown_option_is_no_reason_to_doubt_a_tool() {
        let judged = |status, output: &str| {
            let started = Started::Ended { status, output: output.to_owned() };
            judge("x", "x", Path::new("/nowhere/x"), started, LIMIT).status
        };
        assert_eq!(judged(Some(1), "unknown option --version"), Status::Ok);
        assert_eq!(judged(Some(127), "env: python3.8: No such file"), Status::Problem);
        assert_eq!(judged(None, ""), Status::Problem);
    }
}
