//! Checks that the files to be sent match: tool, libraries, DSP side, and the model's writer.

use super::kit::{DLC_LIBRARY, HTP_EXTENSIONS, Kit};
use super::sdk::TOOL;
use crate::backends::Backend;
use crate::event::clean_text;
use crate::facts::{BuildId, build_id_in, build_id_of, context_text, release};
use crate::models::{ContextBinaryInfo, ModelFormat, dlc_sdk_version};
use std::path::{Path, PathBuf};

/// Version warnings before files are sent; empty if all match or no file names a version. `info` is a context binary's
/// own description, if read.
pub async fn doubts(
    kit: &Kit,
    backend: Backend,
    model: &Path,
    format: ModelFormat,
    info: Option<&ContextBinaryInfo>,
) -> Vec<String> {
    let (kit, path) = (kit.clone(), model.to_owned());
    let told = info.and_then(|info| build_id_in(info.build_id.as_bytes()));
    let looked = tokio::task::spawn_blocking(move || {
        let builds = builds(&kit, backend);
        let maker = maker(format, &path, told);
        compare(&builds, backend, &path, format, maker.as_deref())
    });
    looked.await.unwrap_or_default()
}

/// Files of the kit with a build id, the backend's library first.
fn builds(kit: &Kit, backend: Backend) -> Vec<(String, BuildId)> {
    let is_of_dsp =
        |name: &&String| name.starts_with("libQnnHtp") && (name.ends_with("Stub.so") || name.ends_with("Skel.so"));
    let fixed = [backend.library(), TOOL, DLC_LIBRARY, "libQnnHtpPrepare.so", HTP_EXTENSIONS, "libQnnSystem.so"];
    let names = fixed.into_iter().map(ToOwned::to_owned).chain(kit.keys().filter(is_of_dsp).cloned());
    let file = |name: String| Some((kit.get(&name)?.clone(), name));
    let build = |(path, name): (PathBuf, String)| Some((name, build_id_of(&path).ok()??));
    names.filter_map(file).filter_map(build).collect()
}

/// Version of the SDK that made the model, if recorded.
fn maker(format: ModelFormat, path: &Path, told: Option<BuildId>) -> Option<String> {
    match format {
        ModelFormat::Dlc => dlc_sdk_version(path),
        ModelFormat::ContextBinary => told.or_else(|| context_text(path).ok()?.writer).map(|writer| writer.to_string()),
        ModelFormat::ModelLibrary | ModelFormat::Onnx => None,
    }
}

fn compare(
    builds: &[(String, BuildId)],
    backend: Backend,
    model: &Path,
    format: ModelFormat,
    maker: Option<&str>,
) -> Vec<String> {
    let mut doubts = Vec::new();
    let reference = builds.iter().find(|(name, _)| name == backend.library());
    if let Some((library, build)) = reference {
        for (name, other) in builds.iter().filter(|(name, other)| name != library && other != build) {
            let what = if name == TOOL {
                "tools and libraries of different releases may be incompatible"
            } else {
                "all libraries of a run must come from one build"
            };
            doubts.push(format!("{name} is {other}, {library} is {build}: {what}; use both from one SDK"));
        }
    }
    // The model's reader must not be older than its writer.
    let readers = builds.iter().filter(|(name, _)| match format {
        ModelFormat::Dlc => [TOOL, DLC_LIBRARY, "libQnnSystem.so", backend.library()].contains(&name.as_str()),
        _ => name == backend.library(),
    });
    let oldest = readers.min_by_key(|(_, build)| build.release);
    if let (Some(maker), Some((reader, build))) = (maker, oldest)
        && release(maker).is_some_and(|made| made > build.release)
    {
        let model = model.file_name().map(|name| clean_text(&name.to_string_lossy())).unwrap_or_default();
        doubts.push(format!(
            "{model} was made with SDK {}, {reader} is {build}: an older release often cannot open it; use that SDK's \
             libraries and tool, or rebuild the model with this one",
            clean_text(maker)
        ));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builds(list: &[(&str, &str)]) -> Vec<(String, BuildId)> {
        list.iter().map(|(name, build)| ((*name).to_owned(), build_id_in(build.as_bytes()).unwrap())).collect()
    }

    const OLD: &str = "v2.25.0.240728104910";
    const NEW: &str = "v2.47.0.260601114230";

    fn said(list: &[(&str, &str)], format: ModelFormat, maker: Option<&str>) -> Vec<String> {
        compare(&builds(list), Backend::Htp, Path::new("/m/det.dlc"), format, maker)
    }

    #[test]
    fn what_belongs_together_is_passed_over() {
        let whole = [("libQnnHtp.so", NEW), (TOOL, NEW), ("libQnnHtpV75Skel.so", NEW)];
        assert!(said(&whole, ModelFormat::Dlc, Some("2.47.0.260601114230")).is_empty());
        assert!(said(&whole, ModelFormat::Dlc, Some("2.31.0.250130151446")).is_empty(), "older models are read");
        assert!(said(&[], ModelFormat::Dlc, Some("2.47.0.260601114230")).is_empty(), "nothing is known");
        assert!(said(&whole, ModelFormat::Dlc, Some("unknown")).is_empty());
    }

    #[test]
    fn an_older_tool_is_named_with_what_it_cannot_open() {
        let said = said(&[("libQnnHtp.so", NEW), (TOOL, OLD)], ModelFormat::Dlc, Some("2.47.0.260601114230"));
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("qnn-net-run is v2.25.0") && said[0].contains("libQnnHtp.so is v2.47.0"), "{said:?}");
        assert!(
            said[1].contains("det.dlc was made with SDK 2.47.0") && said[1].contains("qnn-net-run is v2.25"),
            "{said:?}"
        );
    }

    #[test]
    fn a_context_binary_is_read_by_the_backend_alone() {
        let mixed = [("libQnnHtp.so", OLD), (TOOL, NEW)];
        let newer = said(&mixed, ModelFormat::ContextBinary, Some(NEW));
        assert!(newer[1].contains("libQnnHtp.so is v2.25.0"), "{newer:?}");
        let skel = said(&[("libQnnHtp.so", NEW), ("libQnnHtpV75Skel.so", OLD)], ModelFormat::ModelLibrary, None);
        assert!(skel[0].contains("must come from one build"), "{skel:?}");
    }
}
