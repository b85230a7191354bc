//! Stores for tests of analyses, built from the stream as all stores are: [`Made`] by describing a session,
//! [`Feed`] by sending events one by one.

mod feed;
mod made;

pub use feed::{Feed, plan};
pub use made::*;
