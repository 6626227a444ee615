//! `git arborist hooks`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main::<git_arborist::hooks::HooksArgs>(git_arborist::hooks::run)
}
