//! `git arborist install-assets`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::install_assets::run)
}
