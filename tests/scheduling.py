"""The distribution of test files to the workers of pytest-xdist."""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class BothEndsScheduling(LoadFileScheduling):
    """Every other worker takes files from the end of the queue.

    Tests of processes come first, and wait for much of their time. Those at the end only compute. If all workers ran
    the same kind at a time, the processors would be idle at first and too few at last.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.nodes.index(node) % 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
