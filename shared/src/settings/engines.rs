//! The keys of engines that start workers.

use super::{Setting, ValueKind, table::PATH};

const COMMAND: &str = "a command for a shell, in quotes";

/// In the order of the manual.
pub(super) const ENGINES: &[Setting] = &[
    Setting {
        key: "engines.*.submit",
        variable: None,
        kind: ValueKind::Text,
        expected: COMMAND,
        default: "that of the built-in engine of this name: slurm, ssh or kubernetes",
        about: "How 'git arborist work --on NAME' starts workers. The script of a worker is on its standard input; the command starts it {workers} times, prints the name of each job on a line, and ends. {name} is a name for the jobs, {branch} the branch. With {place} in it, it is run for each place of --on NAME:PLACE,PLACE and must run the shell command {command} there, with its own standard input and output. Values are quoted. {{name}} stands for {name} itself.",
    },
    Setting {
        key: "engines.*.alive",
        variable: None,
        kind: ValueKind::Text,
        expected: COMMAND,
        default: "that of the built-in engine of this name, or none",
        about: "A command that prints 'gone' if the job {job} (at {place}) has ended. Any other output changes nothing. It is run by waiting workers of the same submission; if a job is gone, its task is taken over at once. The name of a job is in the variable ARBORIST_JOB of the worker's script, or else its process id.",
    },
    Setting {
        key: "engines.*.cancel",
        variable: None,
        kind: ValueKind::Text,
        expected: COMMAND,
        default: "that of the built-in engine of this name, or none",
        about: "How 'git arborist work cancel --on NAME JOB' ends the job {job} (at {place}).",
    },
    Setting {
        key: "engines.*.jobs",
        variable: None,
        kind: ValueKind::Text,
        expected: COMMAND,
        default: "that of the built-in engine of this name, or none",
        about: "A command that prints the jobs that the job {job} (at {place}) consists of, one on each line, such as the tasks of an array. Each of them has its own log. If it prints nothing, the log is that of the job itself.",
    },
    Setting {
        key: "engines.*.logs",
        variable: None,
        kind: ValueKind::Text,
        expected: COMMAND,
        default: "that of the built-in engine of this name; with {place} in submit, that command; or none",
        about: "The command with which 'git arborist work logs --on NAME JOB' prints the log of the job {job} (at {place}). {command} is a shell command that prints the log on the machine of the worker, and {dir} the folder of workers there.",
    },
    Setting {
        key: "engines.*.dir",
        variable: None,
        kind: ValueKind::Text,
        expected: PATH,
        default: "~/.cache/git-arborist/workers",
        about: "The folder on the machines of workers in which they make their clones.",
    },
    Setting {
        key: "engines.*.manifest",
        variable: None,
        kind: ValueKind::Text,
        expected: PATH,
        default: "for kubernetes: .arborist/engines/kubernetes.yaml",
        about: "A file, relative to the top of the repository, that is passed to submit instead of the script, with {name}, {workers}, {branch} and {script} filled in as YAML. The one of kubernetes is written on first use.",
    },
];
