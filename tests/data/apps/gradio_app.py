"""An order form in Gradio. A submitted order is appended to the file of APP_RECORDS as one line of JSON."""

import json
import os
import pathlib

import gradio as gr

records = pathlib.Path(os.environ["APP_RECORDS"])


def save(kind, **record):
    with records.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": kind, **record}) + "\n")


def order(name, dish, sides, spice, people, delivery, notes):
    save("order", name=name, dish=dish, sides=sides, spice=spice, people=people, delivery=delivery, notes=notes)
    return f"Order of {name} saved"


def rate(stars, text):
    save("rating", stars=stars, text=text)
    return "Rating saved"


with gr.Blocks(title="Orders", analytics_enabled=False) as app:
    with gr.Tab("Order"):
        fields = [
            gr.Textbox(label="Name"),
            gr.Dropdown(["Curry", "Pasta", "Pizza", "Salad", "Soup"], label="Dish", value="Pasta"),
            gr.CheckboxGroup(["Bread", "Rice", "Chips"], label="Sides"),
            gr.Slider(0, 10, value=2, step=1, label="Spice"),
            gr.Number(value=1, precision=0, label="People"),
            gr.Radio(["Collect", "Deliver"], value="Collect", label="Delivery"),
            gr.Textbox(label="Notes", lines=3),
        ]
        result = gr.Textbox(label="Result", interactive=False)
        gr.Button("Order", variant="primary").click(order, fields, result)
    with gr.Tab("Rating"):
        with gr.Accordion("Details", open=False):
            text = gr.Textbox(label="Comment")
        stars = gr.Dropdown([1, 2, 3, 4, 5], label="Stars", multiselect=True)
        done = gr.Markdown()
        gr.Button("Rate").click(rate, [stars, text], done)

app.launch(server_name="127.0.0.1", server_port=int(os.environ["APP_PORT"]), quiet=True, footer_links=[])
