//! A word that goes from one place to another and back.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::namespace::Namespace;

const WITHIN: Duration = Duration::from_secs(20);
/// The ways are without delay: what has not come by then was dropped.
const SOON: Duration = Duration::from_millis(700);

/// Sends a word from one machine to an address of another, and back.
pub(crate) fn exchange(from: &Namespace, to: &Namespace, address: &str) -> anyhow::Result<()> {
    let listener = listen(to, address, 0)?;
    exchange_with(from, &listener)
}

/// As [`exchange`], to a listener.
pub(crate) fn exchange_with(from: &Namespace, listener: &TcpListener) -> anyhow::Result<()> {
    let mut stream = connect(from, listener.local_addr()?, WITHIN)?.context("connect")?;
    stream.set_read_timeout(Some(WITHIN))?;
    stream.write_all(b"ping")?;
    let (mut accepted, _) = listener.accept()?;
    accepted.set_read_timeout(Some(WITHIN))?;
    let mut word = [0; 4];
    accepted.read_exact(&mut word)?;
    accepted.write_all(&word)?;
    stream.read_exact(&mut word)?;
    ensure!(&word == b"ping", "another word came back");
    Ok(())
}

/// Whether nothing comes through from one machine to an address of another, where somebody listens.
pub(crate) fn is_dropped(from: &Namespace, to: &Namespace, address: &str) -> anyhow::Result<bool> {
    let listener = listen(to, address, 0)?;
    is_dropped_at(from, listener.local_addr()?)
}

/// As [`is_dropped`], to an address where the caller knows that somebody listens.
pub(crate) fn is_dropped_at(from: &Namespace, to: SocketAddr) -> anyhow::Result<bool> {
    match connect(from, to, SOON)? {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(true),
        Err(error) => bail!("not dropped but refused: {error}"),
    }
}

pub(crate) fn listen(to: &Namespace, address: &str, port: u16) -> anyhow::Result<TcpListener> {
    to.inside(|| TcpListener::bind((address, port)))?.with_context(|| format!("listen on {address}"))
}

fn connect(from: &Namespace, to: SocketAddr, within: Duration) -> anyhow::Result<io::Result<TcpStream>> {
    from.inside(|| TcpStream::connect_timeout(&to, within))
}
