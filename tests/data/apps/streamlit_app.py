"""A booking form in Streamlit. A submitted booking is appended to the file of APP_RECORDS as one line of JSON."""

import datetime
import json
import os
import pathlib

import pandas
import streamlit as st

records = pathlib.Path(os.environ["APP_RECORDS"])


def save(**record):
    with records.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, default=str) + "\n")


st.set_page_config(page_title="Bookings")
st.title("Bookings")
booking, orders, settings = st.tabs(["Booking", "Orders", "Settings"])

with booking:
    name = st.text_input("Guest")
    room = st.selectbox("Room", ["Single", "Double", "Suite", "Attic"])
    nights = st.number_input("Nights", 1, 30, 1)
    extras = st.multiselect("Extras", ["Breakfast", "Parking", "Sauna", "Late checkout"])
    arrival = st.date_input("Arrival", datetime.date(2026, 1, 1))
    floor = st.slider("Floor", 0, 12, 3)
    payment = st.radio("Payment", ["Card", "Cash", "Invoice"], horizontal=True)
    smoking = st.checkbox("Smoking room")
    quiet = st.toggle("Quiet side")
    remarks = st.text_area("Remarks")
    if st.button("Book now", type="primary"):
        save(
            kind="booking",
            name=name,
            room=room,
            nights=nights,
            extras=extras,
            arrival=arrival,
            floor=floor,
            payment=payment,
            smoking=smoking,
            quiet=quiet,
            remarks=remarks,
        )
        st.success(f"Booked {room} for {name}")

with orders:
    table = pandas.DataFrame({"item": ["Soup", "Bread", "Coffee"], "amount": [1, 2, 3]})
    edited = st.data_editor(table, num_rows="fixed", key="orders")
    if st.button("Send order"):
        save(kind="order", rows=edited.to_dict("records"))
        st.success("Order sent")

with settings, st.form("settings"), st.expander("Advanced"):
    colour = st.color_picker("Theme colour", "#00ff00")
    wake = st.time_input("Wake-up call", datetime.time(8, 0))
    level = st.select_slider("Comfort", ["low", "medium", "high"])
    if st.form_submit_button("Save settings"):
        save(kind="settings", colour=colour, wake=wake, level=level)
        st.success("Settings saved")
