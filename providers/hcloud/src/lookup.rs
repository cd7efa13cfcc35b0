//! Names of a class into the vendor's ids: images, networks, firewalls, placement groups. Kept for a few minutes.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use scarpenter_core::offering::Arch;
use scarpenter_provider::Image;
use tokio::time::Instant;

use crate::api::{Api, Fault};
use crate::settings::Settings;

const KEEP: Duration = Duration::from_secs(300);

/// Remembered ids, by what was asked for.
#[derive(Debug, Default)]
pub(crate) struct Lookup {
    known: Mutex<BTreeMap<(String, String), (u64, Instant)>>,
}

/// What a class names and the vendor does not have.
#[derive(Debug)]
pub(crate) enum Missing {
    /// Not there: what is wrong and what to do.
    Absent(String),
    /// It cannot be told.
    Fault(Fault),
}

impl From<Fault> for Missing {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What the vendor calls an architecture.
pub(crate) fn arch_word(arch: Arch) -> &'static str {
    match arch {
        Arch::Amd64 => "x86",
        Arch::Arm64 => "arm",
    }
}

impl Lookup {
    /// What to send as `image`: an id or name as it is, a channel as the id of its newest snapshot.
    pub(crate) async fn image(
        &self,
        api: &Api,
        image: &Image,
        settings: &Settings,
        arch: Arch,
    ) -> Result<String, Missing> {
        let channel = match image {
            Image::Id(id) => return Ok(id.clone()),
            Image::Flatcar(channel) => channel,
        };
        let selector = image_selector(settings, channel);
        let key = (format!("image {}", arch_word(arch)), selector.clone());
        if let Some(id) = self.remembered(&key) {
            return Ok(id.to_string());
        }
        let found = api.newest_snapshot(&selector, arch_word(arch)).await?;
        let id = found.ok_or_else(|| Missing::Absent(no_snapshot(&selector, channel, arch)))?;
        self.remember(key, id);
        Ok(id.to_string())
    }

    /// Id of what the vendor keeps under `path`, by its id or name; `what` is its word for people.
    pub(crate) async fn id(&self, api: &Api, path: &str, what: &str, wanted: &str) -> Result<u64, Missing> {
        if let Ok(id) = wanted.parse() {
            return Ok(id);
        }
        let key = (path.to_owned(), wanted.to_owned());
        if let Some(id) = self.remembered(&key) {
            return Ok(id);
        }
        let found = api.id_of(path, wanted).await?;
        let id = found
            .ok_or_else(|| Missing::Absent(format!("this project has no {what} of the name {wanted:?}")))?;
        self.remember(key, id);
        Ok(id)
    }

    pub(crate) async fn ids(
        &self,
        api: &Api,
        path: &str,
        what: &str,
        wanted: &[String],
    ) -> Result<Vec<u64>, Missing> {
        let mut out = Vec::with_capacity(wanted.len());
        for one in wanted {
            out.push(self.id(api, path, what, one).await?);
        }
        Ok(out)
    }

    /// The vendor did not take what was remembered: it may have been replaced.
    pub(crate) fn forget(&self) {
        self.known.lock().expect("nobody panics while holding it").clear();
    }

    fn remembered(&self, key: &(String, String)) -> Option<u64> {
        let known = self.known.lock().expect("nobody panics while holding it");
        known.get(key).filter(|(_, at)| at.elapsed() < KEEP).map(|(id, _)| *id)
    }

    fn remember(&self, key: (String, String), id: u64) {
        self.known.lock().expect("nobody panics while holding it").insert(key, (id, Instant::now()));
    }
}

/// Labels of the snapshot for a channel.
pub(crate) fn image_selector(settings: &Settings, channel: &str) -> String {
    let own = settings.image_selector.clone();
    own.unwrap_or_else(|| format!("os=flatcar,flatcar-channel={channel}"))
}

/// The vendor has no Flatcar image of its own: how to make one, as Flatcar's documentation says.
fn no_snapshot(selector: &str, channel: &str, arch: Arch) -> String {
    let (word, board) = (arch_word(arch), arch.as_str());
    format!(
        "this project has no snapshot with the labels {selector:?} for {word}: make one with `hcloud-upload-image upload \
         --architecture {word} --compression bz2 --image-url https://{channel}.release.flatcar-linux.net/{board}-usr/\
         current/flatcar_production_hetzner_image.bin.bz2 --labels os=flatcar,flatcar-channel={channel}`, or name an \
         image of your own in the class"
    )
}
