//! The user's config folder.

use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use std::path::PathBuf;

/// A file in the user's config folder, where the platform has one.
pub fn config_file(name: &str) -> Option<PathBuf> {
    let app_name = "qnnscope".to_owned();
    let args = AppStrategyArgs { top_level_domain: "io".to_owned(), author: "qnnscope".to_owned(), app_name };
    Some(choose_app_strategy(args).ok()?.in_config_dir(name))
}
