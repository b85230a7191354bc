//! The environment's settings for runtimes, read once so that the rest is a function of its arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use etcetera::BaseStrategy;

use super::{Package, Platform, RuntimeError};

/// The variables and folders that determine which runtime is used and where one is installed.
#[derive(Debug, Clone)]
pub struct Env {
    /// `$QNNSCOPE_RUNTIME`: a runtime folder, as with `--runtime`.
    pub runtime: Option<PathBuf>,
    /// `$QNN_SDK_ROOT`: the vendor's SDK.
    pub qnn_sdk_root: Option<PathBuf>,
    /// `$QAIRT_SDK_ROOT`: the vendor's SDK under its newer name.
    pub qairt_sdk_root: Option<PathBuf>,
    /// `$QNNSCOPE_ONNXRUNTIME`: ONNX Runtime's library, its folder, or a Python's `site-packages`.
    pub onnxruntime: Option<PathBuf>,
    /// qnnscope's data folder; `None` if there is neither `$QNNSCOPE_DATA_DIR` nor a home folder.
    pub data_dir: Option<PathBuf>,
    /// The Python that runs pip: `$QNNSCOPE_PYTHON`, else `python3`.
    pub python: PathBuf,
    /// The machine the libraries are for.
    pub platform: Platform,
}

impl Env {
    /// Reads the variables of this process. An empty variable counts as unset.
    pub fn from_process() -> Self {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home_data = etcetera::choose_base_strategy().ok().map(|base| base.data_dir());
        Self::from_lookup(var, home_data)
    }

    /// The same from any source of variables; `home_data` is the folder for programs' data.
    fn from_lookup(var: impl Fn(&str) -> Option<OsString>, home_data: Option<PathBuf>) -> Self {
        let path = |name: &str| var(name).map(PathBuf::from);
        // A relative path would change its meaning with the working directory.
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Self {
            runtime: path("QNNSCOPE_RUNTIME"),
            qnn_sdk_root: path("QNN_SDK_ROOT"),
            qairt_sdk_root: path("QAIRT_SDK_ROOT"),
            onnxruntime: path("QNNSCOPE_ONNXRUNTIME"),
            data_dir: path("QNNSCOPE_DATA_DIR").map(absolute).or_else(|| home_data.map(|data| data.join("qnnscope"))),
            python: path("QNNSCOPE_PYTHON").unwrap_or_else(|| PathBuf::from("python3")),
            platform: Platform::here(),
        }
    }

    /// The folder with the installed versions of a package.
    pub fn folder_of(&self, package: Package) -> Result<PathBuf, RuntimeError> {
        match package {
            Package::Qnn => self.runtimes_dir(),
            Package::OnnxRuntime => self.onnxruntime_dir(),
        }
    }

    /// The folder with the installed runtimes, one folder each. It need not exist.
    pub fn runtimes_dir(&self) -> Result<PathBuf, RuntimeError> {
        match &self.data_dir {
            Some(dir) => Ok(dir.join("runtimes")),
            None => Err(RuntimeError::NoDataDir),
        }
    }

    /// The folder with the installed versions of ONNX Runtime, one folder each. It need not exist.
    pub fn onnxruntime_dir(&self) -> Result<PathBuf, RuntimeError> {
        Ok(self.data_dir.as_ref().ok_or(RuntimeError::NoDataDir)?.join("onnxruntime"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)], home_data: Option<&str>) -> Env {
        Env::from_lookup(
            |name| {
                let pair = pairs.iter().find(|(key, _)| *key == name)?;
                Some(OsString::from(pair.1))
            },
            home_data.map(PathBuf::from),
        )
    }

    #[test]
    fn the_data_folder_is_our_own_below_the_users() {
        let env = env(&[], Some("/home/u/.local/share"));
        let dir = env.runtimes_dir().expect("there is a data folder");
        assert_eq!(dir, PathBuf::from("/home/u/.local/share/qnnscope/runtimes"));
        assert_eq!(env.python, PathBuf::from("python3"));
    }

    #[test]
    fn the_variable_names_our_folder_itself() {
        let env = env(&[("QNNSCOPE_DATA_DIR", "/srv/q"), ("QNNSCOPE_PYTHON", "/opt/py")], Some("/home/u"));
        let dir = env.runtimes_dir().expect("there is a data folder");
        assert_eq!(dir, PathBuf::from("/srv/q/runtimes"));
        assert_eq!(env.python, PathBuf::from("/opt/py"));
    }

    #[test]
    fn no_home_is_an_error_that_names_the_variable() {
        let error = env(&[], None).runtimes_dir().expect_err("no folder");
        let hint = error.hint().expect("a hint");
        assert!(hint.contains("QNNSCOPE_DATA_DIR"), "{hint}");
    }
}
