"""The Hugging Face hub, asked once: without a network its libraries retry for half a minute before each failure."""

import datasets
import huggingface_hub

from position_bias.runtime import log

SECONDS_TO_ANSWER = 5.0


def settle_offline() -> None:
    """Find out whether the hub answers; where it does not, let its libraries use what is cached, at once or not at all.

    For the rest of this process. Proxies and mirrors of the environment are used, as by the libraries themselves.
    """
    if huggingface_hub.constants.HF_HUB_OFFLINE:
        return
    endpoint = huggingface_hub.constants.ENDPOINT
    try:
        huggingface_hub.get_session().head(endpoint, timeout=SECONDS_TO_ANSWER)
    except Exception as error:  # of whichever library carries the request; any means that there is no answer
        log.warning("%s does not answer (%s); only what is cached can be used", endpoint, type(error).__name__)
        huggingface_hub.constants.HF_HUB_OFFLINE = True
        datasets.config.HF_HUB_OFFLINE = True
