import {
  Accordion, AccordionDetails, AccordionSummary, Alert, Autocomplete, Button, Checkbox, Dialog, DialogActions, DialogContent,
  DialogTitle, FormControlLabel, IconButton, Menu, MenuItem, Rating, Slider, Snackbar, Switch, Tab, Tabs, TextField, ToggleButton,
  ToggleButtonGroup, Typography,
} from '@mui/material';
import { DataGrid } from '@mui/x-data-grid';
import { AdapterDayjs } from '@mui/x-date-pickers/AdapterDayjs';
import { DatePicker } from '@mui/x-date-pickers/DatePicker';
import { LocalizationProvider } from '@mui/x-date-pickers/LocalizationProvider';
import dayjs from 'dayjs';
import { useState } from 'react';
import { createRoot } from 'react-dom/client';

let queue = Promise.resolve(); // One request at a time, so that the last state is stored last.
const store = (name, data) => (queue = queue.then(() => fetch('/store/' + name, { method: 'POST', body: JSON.stringify(data) })));
const CITIES = ['Amsterdam', 'Berlin', 'Bern', 'Bratislava', 'Brussels', 'Budapest', 'Copenhagen', 'Dublin', 'Helsinki', 'Lisbon', 'London', 'Madrid'];

function Trip() {
  const [trip, setTrip] = useState({ traveller: '', city: null, stops: [], class: 'second', seats: 1, budget: 200, insured: false, rating: 0, date: dayjs('2026-03-01') });
  const [saved, setSaved] = useState(false);
  const set = (change) => setTrip((old) => ({ ...old, ...change }));
  return (
    <form onSubmit={(event) => { event.preventDefault(); store('trip', { ...trip, date: trip.date?.format('YYYY-MM-DD') ?? null }).then(() => setSaved(true)); }}
      style={{ display: 'grid', gap: 16, maxWidth: 480 }}>
      <TextField label="Traveller" value={trip.traveller} onChange={(event) => set({ traveller: event.target.value })} required />
      <Autocomplete options={CITIES} value={trip.city} onChange={(_, city) => set({ city })} renderInput={(props) => <TextField {...props} label="City" />} />
      <Autocomplete multiple options={CITIES} value={trip.stops} onChange={(_, stops) => set({ stops })} renderInput={(props) => <TextField {...props} label="Stops" />} />
      <TextField select label="Class" value={trip.class} onChange={(event) => set({ class: event.target.value })}>
        <MenuItem value="first">First class</MenuItem><MenuItem value="second">Second class</MenuItem>
      </TextField>
      <TextField label="Seats" type="number" value={trip.seats} onChange={(event) => set({ seats: Number(event.target.value) })} />
      <DatePicker label="Departure" value={trip.date} onChange={(date) => set({ date })} />
      <div><Typography id="budget">Budget</Typography>
        <Slider aria-labelledby="budget" min={0} max={1000} step={50} value={trip.budget} onChange={(_, budget) => set({ budget })} /></div>
      <FormControlLabel control={<Checkbox checked={trip.insured} onChange={(event) => set({ insured: event.target.checked })} />} label="Insured" />
      <Rating name="rating" value={trip.rating} onChange={(_, rating) => set({ rating })} />
      <Button type="submit" variant="contained">Save trip</Button>
      <Snackbar open={saved} autoHideDuration={3000} onClose={() => setSaved(false)}><Alert severity="success">Trip saved</Alert></Snackbar>
    </form>
  );
}

function People() {
  const [rows, setRows] = useState(Array.from({ length: 200 }, (_, index) => ({ id: index + 1, name: `Person ${index + 1}`, age: 20 + (index * 7) % 50, role: ['Clerk', 'Guard', 'Pilot'][index % 3] })));
  const [selected, setSelected] = useState(new Set());
  const [asking, setAsking] = useState(false);
  const save = (next) => { setRows(next); store('people', next); };
  return (
    <div style={{ height: 460 }}>
      <Button disabled={selected.size === 0} onClick={() => setAsking(true)}>Delete selected</Button>
      <DataGrid rows={rows} checkboxSelection pageSizeOptions={[25, 50, 100]} initialState={{ pagination: { paginationModel: { pageSize: 25 } } }}
        columns={[{ field: 'id', width: 80 }, { field: 'name', width: 200, editable: true }, { field: 'age', type: 'number', editable: true }, { field: 'role', width: 120, editable: true, type: 'singleSelect', valueOptions: ['Clerk', 'Guard', 'Pilot'] }]}
        onRowSelectionModelChange={(model) => setSelected(new Set(model.ids ?? model))}
        processRowUpdate={(row) => { save(rows.map((old) => (old.id === row.id ? row : old))); return row; }} />
      <Dialog open={asking} onClose={() => setAsking(false)}>
        <DialogTitle>Delete {selected.size} people?</DialogTitle>
        <DialogContent>This cannot be undone.</DialogContent>
        <DialogActions><Button onClick={() => setAsking(false)}>Keep</Button>
          <Button color="error" onClick={() => { save(rows.filter((row) => !selected.has(row.id))); setAsking(false); }}>Delete</Button></DialogActions>
      </Dialog>
    </div>
  );
}

function Preferences() {
  const [anchor, setAnchor] = useState(null);
  const [prefs, setPrefs] = useState({ theme: 'light', align: 'left', alerts: false, phone: '' });
  const set = (change) => setPrefs((old) => { const next = { ...old, ...change }; store('preferences', next); return next; });
  return (
    <div>
      <Button onClick={(event) => setAnchor(event.currentTarget)}>Theme: {prefs.theme}</Button>
      <Menu anchorEl={anchor} open={Boolean(anchor)} onClose={() => setAnchor(null)}>
        {['light', 'dark', 'contrast'].map((theme) => <MenuItem key={theme} onClick={() => { set({ theme }); setAnchor(null); }}>{theme}</MenuItem>)}
      </Menu>
      <ToggleButtonGroup exclusive value={prefs.align} onChange={(_, align) => align && set({ align })}>
        <ToggleButton value="left">Left</ToggleButton><ToggleButton value="right">Right</ToggleButton>
      </ToggleButtonGroup>
      <FormControlLabel control={<Switch checked={prefs.alerts} onChange={(event) => set({ alerts: event.target.checked })} />} label="Alerts" />
      <Accordion><AccordionSummary>Contact</AccordionSummary><AccordionDetails>
        <TextField label="Phone" value={prefs.phone} onChange={(event) => set({ phone: event.target.value })} />
        <IconButton aria-label="Clear phone" onClick={() => set({ phone: '' })}>×</IconButton>
      </AccordionDetails></Accordion>
    </div>
  );
}

function App() {
  const [tab, setTab] = useState(0);
  return (
    <LocalizationProvider dateAdapter={AdapterDayjs}>
      <Tabs value={tab} onChange={(_, next) => setTab(next)}><Tab label="Trip" /><Tab label="People" /><Tab label="Preferences" /></Tabs>
      <div style={{ padding: 16 }}>{[<Trip key="trip" />, <People key="people" />, <Preferences key="preferences" />][tab]}</div>
    </LocalizationProvider>
  );
}

createRoot(document.querySelector('#app')).render(<App />);
