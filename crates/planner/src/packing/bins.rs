use crate::pass::Passenger;
use crate::table;

/// Machines of one kind while pods are put into them, as a tree over the room that is left: the first with enough of
/// everything is found without asking all.
#[derive(Debug)]
pub(super) struct Bins {
    width: usize,
    /// How many leaves there may be.
    leaves: usize,
    /// By node of the tree, the most that is left of each in any machine below it.
    most: Vec<i64>,
    machines: Vec<Vec<usize>>,
}

impl Bins {
    /// Puts pods, in this order, each into the first machine with room; `None` when more than `most` machines are needed.
    pub(super) fn pack(
        order: &[usize],
        pods: &[Passenger],
        room: &[i64],
        most: usize,
    ) -> Option<Vec<Vec<usize>>> {
        let width = room.len();
        let leaves = most.min(order.len()).next_power_of_two();
        let most_left = room.iter().copied().cycle().take(2 * leaves * width).collect();
        let mut bins = Self { width, leaves, most: most_left, machines: Vec::new() };
        for at in order {
            let need = &pods[*at].need;
            let machine = bins.first(1, need)?;
            if machine >= most {
                return None;
            }
            if bins.machines.len() <= machine {
                bins.machines.resize(machine + 1, Vec::new());
            }
            bins.machines[machine].push(*at);
            bins.take(machine, need);
        }
        Some(bins.machines)
    }

    fn left(&self, node: usize) -> &[i64] {
        &self.most[node * self.width..][..self.width]
    }

    /// The first machine below a node of the tree that has room.
    fn first(&self, node: usize, need: &[i64]) -> Option<usize> {
        if !table::fits(need, self.left(node)) {
            return None;
        }
        if node >= self.leaves {
            return Some(node - self.leaves);
        }
        self.first(2 * node, need).or_else(|| self.first(2 * node + 1, need))
    }

    fn take(&mut self, machine: usize, need: &[i64]) {
        let mut node = machine + self.leaves;
        for (left, need) in self.most[node * self.width..].iter_mut().zip(need) {
            *left = left.saturating_sub(*need);
        }
        while node > 1 {
            node /= 2;
            for at in 0..self.width {
                let of = |child: usize| self.most[child * self.width + at];
                self.most[node * self.width + at] = of(2 * node).max(of(2 * node + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(need: i64) -> Passenger {
        Passenger { need: [need, 1].into(), ..Passenger::default() }
    }

    #[test]
    fn each_pod_goes_to_the_first_machine_with_room() {
        let pods: Vec<Passenger> = [6, 5, 4, 3, 2].map(pod).into();
        let packed = Bins::pack(&[0, 1, 2, 3, 4], &pods, &[10, 9], 5);
        assert_eq!(packed, Some(vec![vec![0, 2], vec![1, 3, 4]]));
    }

    #[test]
    fn more_machines_than_allowed_are_refused() {
        let pods: Vec<Passenger> = [6, 6, 6].map(pod).into();
        assert_eq!(Bins::pack(&[0, 1, 2], &pods, &[10, 9], 2), None);
        assert_eq!(Bins::pack(&[0, 1, 2], &pods, &[10, 9], 3).map(|machines| machines.len()), Some(3));
    }
}
