-- Collectors may be processes of their own, and each detector that hears one passes on what it tells: its last word counts,
-- whoever brought it. A detector's own collector has the detector's uuid as its name.
alter table exporter_figures add column collector text;
update exporter_figures set collector = detector_uuid::text;
alter table exporter_figures alter column collector set not null;
alter table exporter_figures drop constraint exporter_figures_pkey;
alter table exporter_figures add constraint exporter_figures_pkey primary key (collector, source);
create index exporter_figures_detector on exporter_figures (detector_uuid);

-- Which settings of detectors are newer is no clock's matter: replicas of the control plane may have clocks that differ.
create sequence detector_settings_revision;
