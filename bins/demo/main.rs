//! `git arborist demo`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::demo::run)
}
