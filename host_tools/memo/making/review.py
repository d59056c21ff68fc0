"""The review screen: is a painted picture what was asked for, and whole?"""

from __future__ import annotations

from typing import Any

from host_tools.memo.annotation.app import import_gradio, picture_html
from host_tools.memo.making.workshop import VERDICTS, Workshop


def build(workshop: Workshop, reviewer: str) -> Any:
    """Return the Gradio app that shows each unreviewed picture with its prompt, and four buttons.

    Raises
    ------
    ConfigError
        If Gradio is missing.
    """
    gr = import_gradio()
    with gr.Blocks(title="Review portraits", analytics_enabled=False) as app:
        image = gr.State("")
        message = gr.Markdown(elem_id="message")
        picture = gr.HTML(elem_id="picture")
        with gr.Row():
            buttons = [gr.Button(v, elem_id=v.replace(" ", "-"), visible=False) for v in VERDICTS]
        outputs = [image, message, picture, *buttons]

        def show() -> list[Any]:
            waiting = workshop.to_review()
            visible = [gr.update(visible=bool(waiting)) for _ in VERDICTS]
            if not waiting:
                return ["", "Everything is reviewed.", "", *visible]
            emotion, text = workshop.asked_for(waiting[0])
            note = f"{len(waiting)} to review. Asked for **{emotion}**: {text}"
            return [waiting[0], note, picture_html(workshop.pictures / waiting[0]), *visible]

        def judge(verdict: str) -> Any:
            def on_click(shown: str) -> list[Any]:
                if shown in workshop.to_review():  # a second click on a slow page judges nothing
                    workshop.review(shown, verdict, reviewer)
                    workshop.write_index()
                return show()

            return on_click

        quiet: dict[str, Any] = {"outputs": outputs, "api_visibility": "private", "show_progress": "hidden"}
        app.load(show, None, **quiet)
        for verdict, button in zip(VERDICTS, buttons, strict=True):
            button.click(judge(verdict), [image], **quiet)
    return app
