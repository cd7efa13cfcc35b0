//! Files, directories and links.

use ignition_config::v3_3;

use super::check::resource;
use super::{Error, invalid};

/// A file, directory or link at its path.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    /// Where in the document.
    pub(super) place: String,
    pub(super) path: &'a str,
    /// Whether other nodes may be below it.
    pub(super) is_directory: bool,
}

/// All nodes of a document.
pub(super) fn of(storage: &v3_3::Storage) -> Vec<Node<'_>> {
    let node = |list: &str, at: usize, path| Node {
        place: format!("storage.{list}.{at}"),
        path,
        is_directory: list == "directories",
    };
    let files = storage.files.iter().flatten().enumerate().map(|(at, f)| node("files", at, f.path.as_str()));
    let links = storage.links.iter().flatten().enumerate().map(|(at, l)| node("links", at, l.path.as_str()));
    let directories = storage
        .directories
        .iter()
        .flatten()
        .enumerate()
        .map(|(at, d)| node("directories", at, d.path.as_str()));
    files.chain(links).chain(directories).collect()
}

/// Whether both cannot be: one path, or one below the other that is no directory.
pub(super) fn clash(one: &Node<'_>, other: &Node<'_>) -> bool {
    let below = |low: &Node<'_>, high: &Node<'_>| {
        !high.is_directory && low.path.strip_prefix(high.path).is_some_and(|rest| rest.starts_with('/'))
    };
    one.path == other.path || below(one, other) || below(other, one)
}

pub(super) fn check(storage: &v3_3::Storage) -> Result<(), Error> {
    for (at, file) in storage.files.iter().flatten().enumerate() {
        check_file(&format!("storage.files.{at}"), file)?;
    }
    for (at, directory) in storage.directories.iter().flatten().enumerate() {
        let place = format!("storage.directories.{at}");
        mode(&place, directory.mode)?;
        owner(&place, directory.user.as_ref(), directory.group.as_ref())?;
    }
    for (at, link) in storage.links.iter().flatten().enumerate() {
        let place = format!("storage.links.{at}");
        owner(&place, link.user.as_ref(), link.group.as_ref())?;
        let target = link.target.as_deref().unwrap_or_default();
        if target.is_empty() {
            return Err(invalid(place, "has no target"));
        }
        let to_directory = storage.directories.iter().flatten().any(|directory| directory.path == target);
        if link.hard == Some(true) && to_directory {
            return Err(invalid(place, "is a hard link to a directory"));
        }
    }
    let nodes = of(storage);
    for (at, node) in nodes.iter().enumerate() {
        check_path(&node.place, node.path)?;
        if let Some(other) = nodes[..at].iter().find(|other| clash(node, other)) {
            let place = format!("{} {} and {} {}", other.place, other.path, node.place, node.path);
            return Err(invalid(place, "cannot both be"));
        }
    }
    Ok(())
}

fn check_file(place: &str, file: &v3_3::File) -> Result<(), Error> {
    mode(place, file.mode)?;
    owner(place, file.user.as_ref(), file.group.as_ref())?;
    if let Some(contents) = &file.contents {
        resource(&format!("{place}.contents"), contents)?;
    }
    for appended in file.append.iter().flatten() {
        resource(&format!("{place}.append"), appended)?;
    }
    let source = file.contents.as_ref().and_then(|contents| contents.source.as_ref());
    if file.overwrite == Some(true) && source.is_none() {
        return Err(invalid(place, "has overwrite, but no contents.source"));
    }
    Ok(())
}

fn mode(place: &str, mode: Option<i64>) -> Result<(), Error> {
    match mode {
        None | Some(0..=0o777) => Ok(()),
        Some(0o1000..=0o7777) => {
            Err(invalid(place, "has a mode with special bits (modes are decimal: 420 is 0644)"))
        }
        Some(_) => Err(invalid(place, "has a mode that is none (modes are decimal: 420 is 0644)")),
    }
}

fn owner(place: &str, user: Option<&v3_3::NodeUser>, group: Option<&v3_3::NodeGroup>) -> Result<(), Error> {
    let both =
        |id: Option<i64>, name: Option<&String>| id.is_some() && name.is_some_and(|name| !name.is_empty());
    let twice = user.is_some_and(|user| both(user.id, user.name.as_ref()))
        || group.is_some_and(|group| both(group.id, group.name.as_ref()));
    if twice { Err(invalid(place, "has an owner by id and by name")) } else { Ok(()) }
}

/// Absolute, and written the one way.
pub(super) fn check_path(place: &str, path: &str) -> Result<(), Error> {
    let Some(rest) = path.strip_prefix('/') else {
        return Err(invalid(place, "has a path that is not absolute"));
    };
    let clean = rest.is_empty() || rest.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if clean { Ok(()) } else { Err(invalid(place, "has a path with empty, . or .. parts")) }
}
