//! Statements that a rule looks for.

use super::catalogue::Says;
use super::statements::{Classes, Statements, lexicon};

/// What a rule expects a line to state: [`Says`], compiled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) said: Classes,
    of: Classes,
    and: Classes,
    not_of: Classes,
    who: Classes,
}

impl Wanted {
    /// Compiles the names of classes; unknown names match nothing.
    pub(super) fn of(says: &Says) -> Self {
        let lexicon = lexicon();
        let object = |name: &String| lexicon.object_class(name);
        Self {
            said: classes(&says.said, |name| lexicon.said_class(name)),
            of: classes(&says.of, object),
            and: classes(&says.and, object),
            not_of: classes(&says.not_of, object),
            who: classes(&says.who, |name| lexicon.who_class(name)),
        }
    }

    /// True if one of the statements is wanted and the line states a failure.
    pub(super) fn fits(&self, statements: &Statements) -> bool {
        let one_of = |wanted: Classes, found: Classes| wanted.is_empty() || wanted.meets(found);
        statements.is_failure()
            && one_of(self.who, statements.who)
            && statements.list.iter().any(|statement| {
                self.said.has(statement.said)
                    && one_of(self.of, statement.of)
                    && one_of(self.and, statement.of)
                    && !self.not_of.meets(statement.of)
            })
    }
}

fn classes(names: &[String], class: impl Fn(&String) -> Option<u8>) -> Classes {
    let mut classes = Classes::default();
    names.iter().filter_map(class).for_each(|class| classes.insert(class));
    classes
}
