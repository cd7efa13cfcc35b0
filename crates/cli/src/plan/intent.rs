//! Pools and classes, from files or from the built-in example.

use std::collections::BTreeMap;

use scarpenter_api::{NodePool, ScarpenterNodeClass};
use scarpenter_core::pool::{Class, Pool};

use super::documents::{Object, Source, objects};

const EXAMPLE: &str = include_str!("../../../../deploy/examples/default.yaml");

/// What the user allows to be bought.
#[derive(Debug, Default)]
pub(super) struct Intent {
    pub(super) pools: Vec<Pool>,
    pub(super) classes: BTreeMap<String, Class>,
    /// What is to be said about it.
    pub(super) notes: Vec<String>,
}

impl Intent {
    /// Reads pools and classes from both files; kinds that neither file holds come from the example.
    pub(super) fn read(nodepool: Option<&Source>, nodeclass: Option<&Source>) -> anyhow::Result<Self> {
        let mut own = Self::default();
        for source in [nodepool, nodeclass].into_iter().flatten() {
            for object in source.objects()? {
                own.add(object)?;
            }
        }
        let mut example = Self::default();
        for object in objects(EXAMPLE)? {
            example.add(object)?;
        }
        let names = |names: Vec<&str>| names.join(", ");
        if own.pools.is_empty() && nodepool.is_none() {
            let pools = names(example.pools.iter().map(|pool| pool.name.as_str()).collect());
            own.notes.push(format!("no --nodepool: planning with the built-in example's NodePools {pools}"));
            own.pools = example.pools;
        }
        if own.classes.is_empty() && nodeclass.is_none() {
            let classes = names(example.classes.keys().map(String::as_str).collect());
            own.notes.push(format!(
                "no --nodeclass: planning with the built-in example's ScarpenterNodeClass {classes}"
            ));
            own.classes = example.classes;
        }
        Ok(own)
    }

    fn add(&mut self, object: Object) -> anyhow::Result<()> {
        match object.kind.as_str() {
            "NodePool" => self.add_pool(object),
            "ScarpenterNodeClass" => {
                let class = object.parse::<ScarpenterNodeClass>()?.to_class();
                let name = class.name.clone();
                if self.classes.insert(name.clone(), class).is_some() {
                    anyhow::bail!("ScarpenterNodeClass {name} appears twice");
                }
                Ok(())
            }
            _ => anyhow::bail!("{object} is neither a NodePool nor a ScarpenterNodeClass"),
        }
    }

    fn add_pool(&mut self, object: Object) -> anyhow::Result<()> {
        let name = object.to_string();
        let pool = object.parse::<NodePool>()?;
        if !pool.is_ours() {
            self.notes.push(format!("{name} is left out: its nodeClassRef is no ScarpenterNodeClass"));
            return Ok(());
        }
        if pool.spec.replicas.is_some() {
            self.notes.push(format!("{name} is left out: a pool with replicas takes no pods"));
            return Ok(());
        }
        let pool = pool.to_pool().map_err(|problems| anyhow::anyhow!("{name}: {}", problems.join("; ")))?;
        if self.pools.iter().any(|other| other.name == pool.name) {
            anyhow::bail!("{name} appears twice");
        }
        self.pools.push(pool);
        Ok(())
    }
}
