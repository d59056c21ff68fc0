"""The rater's screen: sign in, training, rating, break."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge.errors import ConfigError, DataError, EmoGazeError
from host_tools.memo.annotation.rules import n_stages, training_left
from host_tools.memo.annotation.study import AGE_BANDS, GENDERS, SCALE, Study, Vote
from host_tools.memo.classes import CLASSES, LABEL_OF

#: Reads the facts of the rater's screen in the browser, in place of the last input.
SCREEN_JS = """(...inputs) => [...inputs.slice(0, -1), JSON.stringify({width: screen.width, height: screen.height,
 depth: screen.colorDepth, ratio: window.devicePixelRatio, view: [innerWidth, innerHeight]})]"""
TRAINING = """
## Training

You will see portraits that computers made. For each, say three things.

**Emotion** – which of six emotions the face shows: happy, sad, angry, surprise, worried, neutral. Judge the face, not
the scene. *Worried* is about what may come: drawn brows, tense lips, eyes on something; *sad* is about what has
happened: drooping lids and corners of the mouth. *Neutral* is a face at rest.

**Degree** – how strong the emotion is, from 0 (not at all) to 5 (as strong as can be). For a neutral face: how neutral.

**Quality** – how good the picture is as a picture, from 0 (broken) to 5 (flawless): sharpness, anatomy, light. A fine
picture of the wrong emotion is still a fine picture.

There is no time limit for a picture. Use the whole scale. Sit so that you see the screen straight on, in even light.
"""
LABELS = [(f"{LABEL_OF[code]}", code) for code in CLASSES]


@dataclass
class Session:
    """One browser tab: who sits there, which picture it shows, since when."""

    rater: str = ""
    image: str = ""
    shown_at: float = 0.0
    practising: bool = False


def build(study: Study, folder: Path, practice: Path | None = None) -> Any:
    """Return the Gradio app of a study.

    Parameters
    ----------
    folder : Path
        Where the pictures are. They are sent without their names, which may give away what they were made for.
    practice : Path, optional
        Where the pictures to practise on are.

    Raises
    ------
    ConfigError
        If Gradio is missing.
    """
    gr = import_gradio()
    with gr.Blocks(title="Rate portraits", analytics_enabled=False) as app:
        session = gr.State(Session())
        screen = gr.Textbox(visible=False)
        message = gr.Markdown(elem_id="message")
        with gr.Column(elem_id="sign-in") as sign_in:
            gr.Markdown("## Sign in\nA pseudonym, not your name. Keep the secret: with it you come back after a break.")
            pseudonym = gr.Textbox(label="Pseudonym", elem_id="pseudonym")
            secret = gr.Textbox(label="Secret", type="password", elem_id="secret")
            gender = gr.Dropdown(list(GENDERS), value="", label="Gender (optional)")
            age = gr.Dropdown(list(AGE_BANDS), value="", label="Age (optional)")
            enter = gr.Button("Sign in", variant="primary", elem_id="enter")
        with gr.Column(visible=False, elem_id="training") as training:
            gr.Markdown(TRAINING)
            trained = gr.Button("I have read this, go on", variant="primary", elem_id="trained")
        with gr.Column(visible=False, elem_id="waiting") as waiting:
            again = gr.Button("Go on", variant="primary", elem_id="again")
        with gr.Row(visible=False, elem_id="rating") as rating:
            picture = gr.HTML(elem_id="picture")
            with gr.Column():
                category = gr.Radio(LABELS, label="Emotion", elem_id="category")
                degree = gr.Radio(list(SCALE), label="Degree", elem_id="degree")
                quality = gr.Radio(list(SCALE), label="Quality", elem_id="quality")
                submit = gr.Button("Next", variant="primary", elem_id="submit")

        outputs = [session, message, sign_in, training, waiting, rating, picture, category, degree, quality]
        desk = _Desk(study, folder, practice or folder, gr.update)
        quiet: dict[str, Any] = {"outputs": outputs, "api_visibility": "private", "show_progress": "hidden"}
        enter.click(desk.sign_in, [session, pseudonym, secret, gender, age], **quiet)
        trained.click(desk.end_training, [session], **quiet)
        again.click(desk.show, [session], **quiet)
        submit.click(desk.vote, [session, category, degree, quality, screen], js=SCREEN_JS, **quiet)
    return app


@dataclass
class _Desk:
    """What the buttons do. Each returns session, message, which panels show, the picture, and the answers emptied."""

    study: Study
    folder: Path
    practice: Path
    update: Callable[..., Any]

    def show(self, session: Session, note: str = "") -> list[Any]:
        """Show the rater's next picture, or why there is none now."""
        text, panel, image = _panel(self.study, session)
        html = picture_html((self.practice if session.practising else self.folder) / image) if image else ""
        panels = [self.update(visible=panel == name) for name in ("sign-in", "training", "waiting", "rating")]
        message = "\n\n".join(filter(None, (note, text)))
        return [session, message, *panels, html, None, None, None]

    def sign_in(self, session: Session, name: str, secret: str, gender: str, age: str) -> list[Any]:
        """Let a rater in."""
        try:
            self.study.join(name, secret, gender, age)
        except EmoGazeError as error:
            return self.show(Session(), f"**{error}**")
        return self.show(Session(name.strip()))

    def end_training(self, session: Session) -> list[Any]:
        """Go on to the practice, or end the training if it has lasted long enough."""
        if self.study.next_practice(session.rater):
            return self.show(Session(session.rater, practising=True))
        reason = self.study.finish_training(session.rater)
        return self.show(session, f"**{reason}**" if reason else "")

    def vote(self, session: Session, category: Any, degree: Any, quality: Any, facts: Any) -> list[Any]:
        """Keep a vote, and show the next picture."""
        if not session.rater:
            return self.show(Session(), "**Please sign in again.** All earlier votes are kept.")
        if None in (category, degree, quality):
            return [session, "**Please answer all three.**", *(self.update() for _ in range(8))]
        looked_ms = round(1000 * (time.monotonic() - session.shown_at))
        try:
            vote = Vote(category, degree, quality, looked_ms, _screen_facts(facts))
            if session.practising:
                return self._practised(session, vote)
            self.study.vote(session.rater, session.image, vote)
        except DataError as error:
            return self.show(Session(session.rater), f"**{error}**")
        return self.show(Session(session.rater))

    def _practised(self, session: Session, vote: Vote) -> list[Any]:
        made_for = self.study.practise(session.rater, session.image, vote)
        note = f"You said **{LABEL_OF[vote.category]}**; the picture was made to show **{LABEL_OF[made_for]}**."
        return self.show(Session(session.rater, practising=True), note)


def import_gradio() -> Any:
    """Return the Gradio module.

    Raises
    ------
    ConfigError
        If it is missing.
    """
    try:
        import gradio
    except ImportError:
        raise ConfigError("gradio", "isn't installed", fix="pip install 'emogaze-edge[annotate]'") from None
    return gradio


def serve(app: Any, host: str, port: int) -> None:
    """Serve an app until interrupted; nothing is loaded from elsewhere or sent there."""
    app.launch(server_name=host, server_port=port, quiet=True, show_error=False, footer_links=[], ssr_mode=False)


def _panel(study: Study, session: Session) -> tuple[str, str, str]:
    """Return message, panel and picture for a session; `session` learns which picture it shows."""
    session.image, session.shown_at = "", time.monotonic()
    if not session.rater:
        return "", "sign-in", ""
    state = study.gate(session.rater)
    done = study.progress(session.rater)
    stages = n_stages(len(study.pictures), study.rules)
    if state.kind == "training":
        study.begin_training(session.rater)
        if session.practising and (image := study.next_practice(session.rater)):
            session.image = image
            return f"Practice {list(study.practice).index(image) + 1} of {len(study.practice)}", "rating", image
        left = training_left(study.now(), study.progress(session.rater), study.rules)
        return f"The training lasts {left.total_seconds() / 60:.0f} minutes.", "training", ""
    if state.kind == "done":
        return f"All {done.n_votes} pictures are rated. Thank you!", "", ""
    if state.kind == "wait" and state.until:
        until = state.until.astimezone(study.now().tzinfo)
        return f"Stage {state.stage} of {stages} may begin at {until:%H:%M:%S on %d %B}: {state.reason}.", "waiting", ""
    session.image, session.practising = study.next_picture(session.rater) or "", False
    of_stage = done.n_votes % study.rules.per_stage + 1
    in_stage = min(study.rules.per_stage, len(study.pictures) - (state.stage - 1) * study.rules.per_stage)
    where = f"Stage {state.stage} of {stages}, picture {of_stage} of {in_stage}"
    return where, "rating", session.image


def picture_html(path: Path) -> str:
    """Return the picture itself, byte for byte, inside the page: no name, no re-encoding."""
    kind = {".jpg": "jpeg"}.get(path.suffix.lower(), path.suffix.lower().lstrip("."))
    content = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="portrait" style="max-width:100%;max-height:75vh" src="data:image/{kind};base64,{content}">'


def _screen_facts(text: str | None) -> str:
    """Return the browser's facts as compact JSON, or an empty object if they are none."""
    try:
        facts = json.loads(text or "{}")
    except json.JSONDecodeError:
        return "{}"
    return json.dumps(facts, separators=(",", ":")) if isinstance(facts, dict) and len(text or "") < 1000 else "{}"
