//! Arrows. `T001 → T002` means "then" for most people and "needs" for some; only the order of the file can
//! tell. Where it tells both, nobody but the author knows.

use super::needs::Need;
use crate::plan::{
    Problem,
    assemble::{Draft, Place},
    text::SpecFile,
};

/// An arrow from one node to another, by position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrow {
    pub(super) left: usize,
    pub(super) right: usize,
    pub(super) place: Place,
}

impl Arrow {
    fn is_forward(&self) -> bool {
        self.left < self.right
    }

    fn read_forward(&self) -> Need {
        Need { who: self.right, on: self.left, place: self.place }
    }

    fn read_backward(&self) -> Need {
        Need { who: self.left, on: self.right, place: self.place }
    }
}

/// What the arrows of a file mean, in the one reading that `agrees` with the order of its tasks.
pub(super) fn read(
    file: &SpecFile<'_>,
    drafts: &[Draft],
    arrows: &[Arrow],
    agrees: impl Fn(&[Need]) -> bool,
) -> Result<Vec<Need>, Problem> {
    let then: Vec<Need> = arrows.iter().map(Arrow::read_forward).collect();
    let needs: Vec<Need> = arrows.iter().map(Arrow::read_backward).collect();
    let forward = arrows.iter().find(|arrow| arrow.is_forward());
    let backward = arrows.iter().find(|arrow| !arrow.is_forward());
    let (Some(forward), Some(backward)) = (forward, backward) else {
        return Ok(if backward.is_none() { then } else { needs });
    };
    match (agrees(&then), agrees(&needs)) {
        (true, false) => Ok(then),
        (false, true) => Ok(needs),
        _ => Err(both_ways(file, drafts, (forward, backward))),
    }
}

fn both_ways(file: &SpecFile<'_>, drafts: &[Draft], (forward, backward): (&Arrow, &Arrow)) -> Problem {
    let id = |at: usize| &drafts[at].task.id;
    let line = |arrow: &Arrow| file.line_of(arrow.place.at);
    let (first, second) = (id(backward.left), id(backward.right));
    let what = format!(
        "arrows point both ways: read as 'then', '{first} → {second}' here puts '{first}' before '{second}', which \
         stands above it; read as 'needs', '{} → {}' in line {} lets '{}' wait for '{}', which stands below it",
        id(forward.left),
        id(forward.right),
        line(forward),
        id(forward.left),
        id(forward.right),
    );
    let fix = format!("let all arrows point one way, or write '{first} depends on {second}'");
    file.problem(backward.place.at, what, fix)
}
