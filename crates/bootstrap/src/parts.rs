//! The files, links and units of a machine, as they are gathered.

use ignition_config::v3_3;

use crate::data_url;

/// What becomes the inner document.
#[derive(Default)]
pub(crate) struct Parts {
    files: Vec<v3_3::File>,
    links: Vec<v3_3::Link>,
    units: Vec<v3_3::Unit>,
}

impl Parts {
    /// A file that everybody on the machine may read.
    pub(crate) fn file(&mut self, path: &str, contents: &str) {
        self.push(path, contents, 0o644);
    }

    /// A file that only root may read.
    pub(crate) fn secret(&mut self, path: &str, contents: &str) {
        self.push(path, contents, 0o600);
    }

    /// A program.
    pub(crate) fn program(&mut self, path: &str, contents: &str) {
        self.push(path, contents, 0o755);
    }

    /// A file that is fetched.
    pub(crate) fn fetched(&mut self, path: &str, source: String, hash: Option<String>) {
        let verification = hash.map(|hash| v3_3::Verification { hash: Some(hash) });
        let mut file = v3_3::File::new(path.to_owned());
        file.contents = Some(v3_3::Resource { source: Some(source), verification, ..Default::default() });
        file.mode = Some(0o644);
        self.files.push(file);
    }

    /// A symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        let mut link = v3_3::Link::new(path.to_owned());
        link.target = Some(target.to_owned());
        link.overwrite = Some(true);
        self.links.push(link);
    }

    /// A unit that others start.
    pub(crate) fn unit(&mut self, name: &str, contents: &str) {
        self.of_name(name).contents = Some(contents.to_owned());
    }

    /// A unit that starts at boot.
    pub(crate) fn enabled(&mut self, name: &str, contents: &str) {
        self.unit(name, contents);
        self.enable(name);
    }

    /// A unit that the system has, started at boot.
    pub(crate) fn enable(&mut self, name: &str) {
        self.of_name(name).enabled = Some(true);
    }

    /// A unit that must not start.
    pub(crate) fn masked(&mut self, name: &str) {
        self.of_name(name).mask = Some(true);
    }

    /// More of a unit.
    pub(crate) fn dropin(&mut self, unit: &str, name: &str, contents: &str) {
        let mut dropin = v3_3::Dropin::new(name.to_owned());
        dropin.contents = Some(contents.to_owned());
        self.of_name(unit).dropins.get_or_insert_default().push(dropin);
    }

    /// The document that they make.
    pub(crate) fn into_config(self) -> v3_3::Config {
        let storage =
            v3_3::Storage { files: Some(self.files), links: Some(self.links), ..Default::default() };
        let systemd = v3_3::Systemd { units: Some(self.units) };
        v3_3::Config { storage: Some(storage), systemd: Some(systemd), ..Default::default() }
    }

    fn push(&mut self, path: &str, contents: &str, mode: i64) {
        let mut file = v3_3::File::new(path.to_owned());
        file.contents = Some(v3_3::Resource { source: Some(data_url::text(contents)), ..Default::default() });
        file.mode = Some(mode);
        file.overwrite = Some(true);
        self.files.push(file);
    }

    fn of_name(&mut self, name: &str) -> &mut v3_3::Unit {
        let at = self.units.iter().position(|unit| unit.name == name).unwrap_or_else(|| {
            self.units.push(v3_3::Unit::new(name.to_owned()));
            self.units.len() - 1
        });
        &mut self.units[at]
    }
}
