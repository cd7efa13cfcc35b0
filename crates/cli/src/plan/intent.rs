//! Pools and classes, from files or from the built-in example.

use std::collections::BTreeMap;

use kube::Resource;
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
        let classes = names(own.classes.keys().map(String::as_str).collect());
        let own_pools = !own.pools.is_empty() || nodepool.is_some();
        if !own_pools {
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
        } else if !own_pools && own.pools.iter().all(|pool| !own.classes.contains_key(&pool.class)) {
            anyhow::bail!(
                "no NodePool names ScarpenterNodeClass {classes}: give one that does by --nodepool"
            );
        }
        own.leave_out_classless()?;
        Ok(own)
    }

    /// A pool whose class is in no file can buy nothing; that is said once instead of for each pod.
    fn leave_out_classless(&mut self) -> anyhow::Result<()> {
        let (usable, classless): (Vec<Pool>, Vec<Pool>) = std::mem::take(&mut self.pools)
            .into_iter()
            .partition(|pool| self.classes.contains_key(&pool.class));
        let lacks = classless.iter().map(|pool| {
            format!("NodePool {} names ScarpenterNodeClass {}, which no file holds", pool.name, pool.class)
        });
        let lacks: Vec<String> = lacks.collect();
        if usable.is_empty() && !lacks.is_empty() {
            anyhow::bail!("{}: give it by --nodeclass", lacks.join("; "));
        }
        self.notes.extend(lacks.into_iter().map(|words| format!("{words}: it is left out")));
        self.pools = usable;
        Ok(())
    }

    fn add(&mut self, object: Object) -> anyhow::Result<()> {
        match object.kind.as_str() {
            "NodePool" => self.add_pool(object),
            "ScarpenterNodeClass" => self.add_class(object),
            _ => anyhow::bail!("{object} is neither a NodePool nor a ScarpenterNodeClass"),
        }
    }

    fn add_class(&mut self, object: Object) -> anyhow::Result<()> {
        object.expect_version(&ScarpenterNodeClass::api_version(&()))?;
        let what = object.to_string();
        let class = object.parse::<ScarpenterNodeClass>(&mut self.notes)?;
        let of_vendors = class.vendor_problems().into_values().flatten();
        let problems = class.problems().into_iter().chain(of_vendors);
        self.notes.extend(problems.map(|words| format!("{what}: {words}")));
        let class = class.to_class();
        let name = class.name.clone();
        if self.classes.insert(name.clone(), class).is_some() {
            anyhow::bail!("ScarpenterNodeClass {name} appears twice");
        }
        Ok(())
    }

    fn add_pool(&mut self, object: Object) -> anyhow::Result<()> {
        let name = object.to_string();
        object.expect_version(&NodePool::api_version(&()))?;
        let pool = object.parse::<NodePool>(&mut self.notes)?;
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
