//! `git arborist trailers`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::trailers::run)
}
