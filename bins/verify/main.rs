//! `git arborist verify`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::verify::run)
}
