"""Certification: an agent on a store gets the highest level that it truly reaches.

- `revision`: a requirement set with its levels, frozen data (`requirements/*.yaml`);
- `asked`, `reading`, `scenario_set`: what was asked for, and whether that set can
  certify at all;
- `derive`: a scenario as a campaign of a level runs it;
- `run`: the campaigns, level after level (the only part that runs anything);
- `observed`, `outcomes`: what they left behind, and what it means for a level;
- `results`, `evidence`: what is known so far, and as much of it as is weighed;
- `stops`, `levels`, `known`: what stands in the way of a level, and which one follows,
  pure;
- `certificate`, `not_judged`, `not_varied`: all that it says;
- `as_json`, `text`, `page`, `junit` and `folder`: what is left to publish;
- `reference`: what the contract says of all this.

Nothing is skipped and nothing is softened: a campaign that proves nothing holds a level
up as one that finds something does.
"""

import time
from pathlib import Path

from chaoskit.campaign import Listener
from chaoskit.campaign.output import claimed, full_disk_is_told
from chaoskit.certify import folder
from chaoskit.certify.asked import Asked, Certified, CertifyError
from chaoskit.certify.certificate import Certificate
from chaoskit.certify.reading import read
from chaoskit.certify.run import Certifier, Selftest
from chaoskit.certify.server import server_of

__all__ = ["Asked", "Certificate", "CertifyError", "certify", "read"]


def certify(
    certified: Certified, selftest: Selftest, listener: Listener = lambda _: None
) -> Certificate:
    """Run what the levels ask for; the certificate is also left in the output folder.

    Raises:
        CertifyError: what the manifest declares cannot be verified.
        MissingServer: a server that is needed cannot be had; and all else that
            `chaoskit.campaign.run_campaign` raises.
    """
    began, out = time.monotonic(), certified.asked.out
    server = server_of(certified.manifest.store)
    with full_disk_is_told(out), claimed(out, certified.inputs):
        results = Certifier(certified, selftest, listener).run()
        certificate = Certificate.of(certified, results, server)
        folder.leave(certificate, Path(out), time.monotonic() - began)
    return certificate
