//! `git arborist plan`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::plan::run)
}
