//! The keys of reviews, of secrets in files, and of prompts.

use super::{
    DefaultValue, ValueKind,
    setting::{choices, settings},
    value::Sourced,
};

const EXPECTED: &str = "the text of a prompt, in quotes";

choices! {
    /// Where reviewers work.
    ReviewsIn {
        /// In a worktree of the commit under review, which is reset before each review.
        #[default]
        Scratch = "scratch",
        /// In the task's own checkout, with everything that is installed there.
        Checkout = "checkout",
    }
}

choices! {
    /// What happens if an agent writes a secret into a file that is committed.
    SecretFiles {
        /// The run warns.
        #[default]
        Warn = "warn",
        /// The file is put back, and the attempt fails.
        Refuse = "refuse",
        /// Nothing; files are not searched.
        Ignore = "off",
    }
}

settings! {
    /// How work is reviewed, and searched for secrets.
    ReviewerSettings in REVIEW;

    place: ReviewsIn {
        key: "steps.review.place",
        kind: ValueKind::Choice(ReviewsIn::WORDS),
        default: DefaultValue::Text("scratch"),
        about: "Where reviewers work: in a separate worktree of the commit under review (scratch), or in the task's own checkout (checkout), for reviewers that need the dependencies installed there.",
    }
    diff_limit: usize {
        key: "review.diff-limit",
        variable: "ARBORIST_REVIEW_DIFF_LIMIT",
        kind: ValueKind::Count,
        expected: "a number of characters",
        default: DefaultValue::Count(8000),
        about: "Maximum length of the diff in the reviewer's prompt, in characters. A longer diff is cut; the prompt then has the number of changed lines of each file and a command that shows the whole diff.",
    }
    redact_files: SecretFiles {
        key: "redact.files",
        variable: "ARBORIST_REDACT_FILES",
        kind: ValueKind::Choice(SecretFiles::WORDS),
        default: DefaultValue::Text("warn"),
        about: "What happens if an agent writes a secret into a file that is committed. A secret is the value of a secret environment variable, a token of a well-known provider or a private key. warn: the run names the file and the secret. refuse: the file is restored, and the attempt fails. off: files are not searched.",
    }
}

settings! {
    /// Prompts, and files that agents read first.
    PromptSettings in PROMPTS;

    context: Vec<String> {
        key: "context",
        variable: "ARBORIST_CONTEXT",
        kind: ValueKind::Words,
        expected: "a list of paths in quotes",
        default: DefaultValue::List(&[], "nothing"),
        about: "Files that agents and reviewers are asked to read first, relative to the top of the repository. Those that do not exist are left out.",
    }
    implement: Option<Sourced<String>> {
        key: "prompts.implement",
        kind: ValueKind::Text,
        expected: EXPECTED,
        default: DefaultValue::InWords("the built-in prompt"),
        about: "The prompt of agents. The file .arborist/prompts/implement.md sets it too. In it, {prompt} stands for the built-in prompt, and {task}, {name}, {description}, {phase}, {dependencies}, {documents}, {context}, {rules} and {feedback} for its parts; {{name}} stands for {name} itself. Rules and feedback are appended if the text does not place them. See the result with --dry-run --verbose.",
    }
    review: Option<Sourced<String>> {
        key: "prompts.review",
        kind: ValueKind::Text,
        expected: EXPECTED,
        default: DefaultValue::InWords("the built-in prompt"),
        about: "The prompt of reviewers, as prompts.implement, with {diff} instead of {dependencies} and {feedback}. The file .arborist/prompts/review.md sets it too.",
    }
}
