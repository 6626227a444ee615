//! The list of what `install-assets` carries: every generated page and completion.

use std::fmt::Write;

const HEAD: &str = "\
//! Everything that is installed. Made by `BLESS=1 cargo test --test generated`.

use super::assets::{Asset, AssetFolder};

macro_rules! asset {
    ($asset_folder:ident, $folder:literal, $name:literal) => {
        Asset {
            asset_folder: AssetFolder::$asset_folder,
            name: $name,
            text: include_str!(concat!(\"../../\", $folder, \"/\", $name)),
        }
    };
}

pub(super) const ASSETS: &[Asset] = &[
";

pub(crate) fn list<'a>(paths: impl Iterator<Item = &'a String>) -> String {
    let mut text = String::from(HEAD);
    for path in paths {
        let (folder, name) = path.rsplit_once('/').expect("a folder");
        let _ = writeln!(text, "    asset!({}, \"{folder}\", \"{name}\"),", asset_folder(folder, name));
    }
    text + "];\n"
}

fn asset_folder(folder: &str, name: &str) -> &'static str {
    match (folder, name) {
        ("man", name) if name.ends_with(".5") => "Man5",
        ("man", _) => "Man1",
        ("completions/conf.d", _) => "FishStart",
        (_, name) if name.ends_with(".fish") => "FishCompletion",
        (_, name) if name.starts_with('_') => "Zsh",
        _ => "Bash",
    }
}
