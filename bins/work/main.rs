//! `git arborist work`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::work::run)
}
