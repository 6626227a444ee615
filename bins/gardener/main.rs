//! `git arborist gardener`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::gardener::run)
}
