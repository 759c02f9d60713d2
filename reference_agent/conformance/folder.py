"""A store of files stays in its folder, whatever a run is called."""

from pathlib import Path

import pytest

from reference_agent.conformance.bench import Bench, taken
from reference_agent.conformance.names import ODD
from reference_agent.stores.base import Store


class FolderConformance(Bench):
    """For stores that make file names of run ids."""

    @pytest.fixture
    def folder(self) -> Path:
        """Where the store keeps its files; what is beside it is not the store's."""
        raise NotImplementedError("give your class a fixture `folder`")

    def test_nothing_is_written_beside_the_folder(
        self, folder: Path, store: Store
    ) -> None:
        """Not by dots and slashes, and nothing that lies there is read."""
        for name in ("a", "etc"):
            (folder.parent / name).mkdir(exist_ok=True)
        before = sorted(folder.parent.iterdir())
        for run_id in ODD:
            assert store.create(run_id, {"id": run_id}) is True
            token = taken(store, run_id, "a").token
            store.save(run_id, token, {"id": run_id, "n": 1})
        after = {*folder.parent.iterdir()} - {folder}
        assert sorted(after) == [path for path in before if path != folder]
        assert [*(folder.parent / "a").iterdir()] == []
